// One work-group a stack: the pixels are shared out, sums meet in local memory.
{
    const int me = LOCAL_ID(0);
    const int stack = GROUP_ID(1);
    const int picture = GROUP_ID(2);
    const int plane = (picture * src_stacks + src_stack0 + stack) * hw;
    FLOAT4 sum = SPLAT(0.0f);
    for (int first = me; first < hw; first += IN_A_ROW * KY) {
        FLOAT4 part = SPLAT(0.0f);
        for (int i = first; i < IMIN(first + IN_A_ROW * KY, hw); i += KY) part += LOAD_src(plane + i);
        sum += part;
    }
    partial[me] = sum;
    INCLUDE summed
    if (me == 0) STORE_dst(picture * dst_stacks + dst_stack0 + stack, partial[0] / SPLAT(FLOAT(hw)));
}
