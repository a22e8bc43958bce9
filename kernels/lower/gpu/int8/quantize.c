// Vectors of four channels -> words of four whole numbers, less 128, by the range of their picture.
{
    const int picture = GROUP_ID(1);
    FLOAT4 range = SPLAT(0.0f);
    for (int chunk = 0; chunk < chunks; ++chunk) range = MAX(range, LOAD_ranges(picture * chunks + chunk));
    float scale = DIVIDE(range.x + range.y, 255.0f);
    float inverse = 1.0f;
    float zero = 0.0f;
    if (range.z > 0.0f || !(scale <= 3.402823466e38f)) {
        scale = LOWEST - LOWEST;
        inverse = 0.0f;
    } else if (scale < 1e-37f) {
        scale = 1.0f;
    } else {
        inverse = DIVIDE(1.0f, scale);
        zero = MAX(0.0f, -MAX(-255.0f, -ROUND(range.x * inverse)));
    }
    const int first = GROUP_ID(0) * RUN * LOCAL_SIZE(0) + LOCAL_ID(0);
    if (first == 0) STORE_steps(picture, VEC4(scale, zero - 128.0f, 0.0f, 0.0f));
    for (int r = 0; r < RUN; ++r) {
        const int i = first + r * LOCAL_SIZE(0);
        if (i < count) {
            const FLOAT4 q = LOAD_src((picture * src_stacks + src_stack0) * hw + i) * SPLAT(inverse);
            STORE_codes(picture * count + i, WORD(TO_INT4(IN_STEPS(q, zero) + SPLAT(zero - 128.0f))));
        }
    }
}
