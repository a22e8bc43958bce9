{
    const int stack = GLOBAL_ID(0);
    if (stack >= stacks) return;
    const int picture = GROUP_ID(2);
    const int plane = (picture * src_stacks + src_stack0 + stack) * hw;
    FLOAT4 sum = SPLAT(0.0f);
    for (int first = 0; first < hw; first += IN_A_ROW) {
        FLOAT4 part = SPLAT(0.0f);
        for (int i = first; i < IMIN(first + IN_A_ROW, hw); ++i) part += LOAD_src(plane + i);
        sum += part;
    }
    STORE_dst(picture * dst_stacks + dst_stack0 + stack, sum / SPLAT(FLOAT(hw)));
}
