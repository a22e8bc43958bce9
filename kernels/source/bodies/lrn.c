// Across channels: x / (bias + alpha / size * sum of squares in the window) ** beta.
{
    const int pixel = GLOBAL_ID(0);
    if (pixel >= hw) return;
    const int stack = GROUP_ID(1);
    const int picture = GROUP_ID(2);
    const int base = (picture * src_stacks + src_stack0) * hw;
    float result[4];
    for (int lane = 0; lane < 4; ++lane) {
        const int channel = stack * 4 + lane;
        const int last = IMIN(channel + size / 2, channels - 1);
        float squares = 0.0f;
        for (int c = IMAX(channel - (size - 1) / 2, 0); c <= last; ++c) {
            const float x = LOAD_src((base + c / 4 * hw + pixel) * 4 + c % 4);
            squares = MAD(x, x, squares);
        }
        const float x = LOAD_src((base + stack * hw + pixel) * 4 + lane);
        const float base = bias + alpha / FLOAT(size) * squares;
        // not every driver's power of infinity is zero, or of NaN is NaN
        const float factor = base <= 3.4e38f ? POW(base, -beta) : base > 3.4e38f ? 0.0f : base;
        result[lane] = channel < channels ? x * factor : 0.0f;
    }
    STORE_dst((picture * dst_stacks + dst_stack0 + stack) * hw + pixel,
              VEC4(result[0], result[1], result[2], result[3]));
}
