// Channels of a tensor in stacks, by a table of them: one work-item a pixel and stack. Beyond the last channel: zeros.
{
    const int pixel = GLOBAL_ID(0);
    if (pixel >= hw) return;
    const int stack = GROUP_ID(1);
    const int plane = (GROUP_ID(2) * src_stacks + src_stack0) * hw + pixel;
    float taken[4];
    UNROLL for (int lane = 0; lane < 4; ++lane) {
        const int from = TO_INT(LOAD_table(stack * 4 + lane));
        taken[lane] = 0.0f;
        if (from >= 0) taken[lane] = LOAD_src((plane + from / 4 * hw) * 4 + from % 4);
    }
    STORE_dst((GROUP_ID(2) * dst_stacks + dst_stack0 + stack) * hw + pixel, VEC4(taken[0], taken[1], taken[2], taken[3]));
}
