// Over the channels of a pixel, by a work-item, or a work-group of KY: then they are shared out, and maximum and sum meet in
// local memory. The maximum is taken off first so that nothing overflows.
{
#ifdef KY
    const int me = LOCAL_ID(0);
    const int pixel = GROUP_ID(1);
#define STEP KY
#else
    const int me = 0;
    const int pixel = GLOBAL_ID(0);
    if (pixel >= hw) return;
#define STEP 1
#endif
    const int picture = GROUP_ID(2);
    const int source = (picture * src_stacks + src_stack0) * hw + pixel;
    const int target = (picture * dst_stacks + dst_stack0) * hw + pixel;
    const int stacks = (channels + 3) / 4;
    float most = -3.4028234e38f;
    for (int s = me; s < stacks; s += STEP) {
        const FLOAT4 v = LOAD_src(source + s * hw);
        const int valid = channels - 4 * s;
        most = MAX(most, v.x);
        if (valid > 1) most = MAX(most, v.y);
        if (valid > 2) most = MAX(most, v.z);
        if (valid > 3) most = MAX(most, v.w);
    }
#ifdef KY
    partial[me] = SPLAT(most);
    INCLUDE largest
    most = partial[0].x;
    BARRIER;
#endif
    float sum = 0.0f;
    for (int first = me; first < stacks; first += IN_A_ROW * STEP) {
        float part = 0.0f;
        for (int s = first; s < IMIN(first + IN_A_ROW * STEP, stacks); s += STEP) {
            const FLOAT4 v = EXP(LOAD_src(source + s * hw) - SPLAT(most));
            const int valid = channels - 4 * s;
            part += v.x;
            if (valid > 1) part += v.y;
            if (valid > 2) part += v.z;
            if (valid > 3) part += v.w;
        }
        sum += part;
    }
#ifdef KY
    partial[me] = SPLAT(sum);
    INCLUDE summed
    sum = partial[0].x;
#endif
    for (int s = me; s < stacks; s += STEP) {
        const FLOAT4 v = EXP(LOAD_src(source + s * hw) - SPLAT(most)) / SPLAT(sum);
        const int valid = channels - 4 * s;
        STORE_dst(target + s * hw, VEC4(v.x, valid > 1 ? v.y : 0.0f, valid > 2 ? v.z : 0.0f, valid > 3 ? v.w : 0.0f));
    }
}
