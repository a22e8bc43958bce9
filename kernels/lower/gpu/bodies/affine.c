{
    const int pixel = GLOBAL_ID(0);
    if (pixel >= hw) return;
    const int stack = GROUP_ID(1);
    const int picture = GROUP_ID(2);
    const FLOAT4 value = LOAD_src((picture * src_stacks + src_stack0 + stack) * hw + pixel);
    STORE_dst((picture * dst_stacks + dst_stack0 + stack) * hw + pixel, MAD(value, LOAD_scale(stack), LOAD_shift(stack)));
}
