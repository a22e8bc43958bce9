// A stack a work-item, or a work-group of KY: then the pixels are shared out, and sums meet in local memory.
{
#ifdef KY
    const int me = LOCAL_ID(0);
    const int stack = GROUP_ID(1);
#define STEP KY
#else
    const int me = 0;
    const int stack = GLOBAL_ID(0);
    if (stack >= stacks) return;
#define STEP 1
#endif
    const int picture = GROUP_ID(2);
    const int plane = (picture * src_stacks + src_stack0 + stack) * hw;
    FLOAT4 sum = SPLAT(0.0f);
    for (int first = me; first < hw; first += IN_A_ROW * STEP) {
        FLOAT4 part = SPLAT(0.0f);
        for (int i = first; i < IMIN(first + IN_A_ROW * STEP, hw); i += STEP) part += LOAD_src(plane + i);
        sum += part;
    }
#ifdef KY
    partial[me] = sum;
    INCLUDE summed
    sum = partial[0];
#endif
    if (me == 0) STORE_dst(picture * dst_stacks + dst_stack0 + stack, sum / SPLAT(FLOAT(hw)));
}
