// Over the channels of one pixel; the maximum is taken off first so that nothing overflows.
{
    const int pixel = GLOBAL_ID(0);
    if (pixel >= hw) return;
    const int picture = GROUP_ID(2);
    const int source = (picture * src_stacks + src_stack0) * hw + pixel;
    const int target = (picture * dst_stacks + dst_stack0) * hw + pixel;
    float most = -3.4028234e38f;
    for (int c = 0; c < channels; c += 4) {
        const FLOAT4 v = LOAD_src(source + c / 4 * hw);
        most = MAX(most, v.x);
        if (c + 1 < channels) most = MAX(most, v.y);
        if (c + 2 < channels) most = MAX(most, v.z);
        if (c + 3 < channels) most = MAX(most, v.w);
    }
    float sum = 0.0f;
    for (int first = 0; first < channels; first += IN_A_ROW) {
        float part = 0.0f;
        for (int c = first; c < IMIN(first + IN_A_ROW, channels); c += 4) {
            const FLOAT4 v = EXP(LOAD_src(source + c / 4 * hw) - SPLAT(most));
            part += v.x;
            if (c + 1 < channels) part += v.y;
            if (c + 2 < channels) part += v.z;
            if (c + 3 < channels) part += v.w;
        }
        sum += part;
    }
    for (int c = 0; c < channels; c += 4) {
        const FLOAT4 v = EXP(LOAD_src(source + c / 4 * hw) - SPLAT(most)) / SPLAT(sum);
        STORE_dst(target + c / 4 * hw, VEC4(v.x, c + 1 < channels ? v.y : 0.0f, c + 2 < channels ? v.z : 0.0f,
                                            c + 3 < channels ? v.w : 0.0f));
    }
}
