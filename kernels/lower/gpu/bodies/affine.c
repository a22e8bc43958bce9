{
    const int pixel = GLOBAL_ID(0);
    if (pixel >= hw) return;
    const int stack = GROUP_ID(1);
    const int picture = GROUP_ID(2);
    const FLOAT4 given = LOAD_src((picture * src_stacks + src_stack0 + stack) * hw + pixel);
    const WIDE4 value = TO_WIDE4(MAD(given, LOAD_scale(stack), LOAD_shift(stack)));
    STORE_dst((picture * dst_stacks + dst_stack0 + stack) * hw + pixel, ACTIVATE(value));
}
