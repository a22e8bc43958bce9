// One work-group a chunk of `span` vectors of a picture: how far it reaches below 0 and above, and whether one is NaN.
{
    const int me = LOCAL_ID(0);
    const int chunk = GROUP_ID(0);
    const int picture = GROUP_ID(1);
    const int plane = (picture * src_stacks + src_stack0) * hw;
    const int end = IMIN((chunk + 1) * span, stacks * hw);
    FLOAT4 below = SPLAT(0.0f);
    FLOAT4 above = SPLAT(0.0f);
    float bad = 0.0f;
    for (int i = chunk * span + me; i < end; i += KY) {
        FLOAT4 x = LOAD_src(plane + i);
        TRIM(i >= (stacks - 1) * hw, x)
        below = MAX(-x, below);
        above = MAX(x, above);
        if (IS_NAN1(x.x) || IS_NAN1(x.y) || IS_NAN1(x.z) || IS_NAN1(x.w)) bad = 1.0f;
    }
    partial[me] = VEC4(MAX(MAX(below.x, below.y), MAX(below.z, below.w)),
                       MAX(MAX(above.x, above.y), MAX(above.z, above.w)), bad, 0.0f);
    INCLUDE largest
    if (me == 0) STORE_ranges(picture * chunks + chunk, partial[0]);
}
