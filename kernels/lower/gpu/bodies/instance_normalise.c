{
    const int pixel = GLOBAL_ID(0);
    if (pixel >= hw) return;
    const int stack = GROUP_ID(1);
    const int picture = GROUP_ID(2);
    const int at = (picture * stacks + stack) * 2;
    const FLOAT4 distance = LOAD_src((picture * src_stacks + src_stack0 + stack) * hw + pixel) - LOAD_factors(at);
    const FLOAT4 value = MAD(distance, LOAD_factors(at + 1), LOAD_shift(stack));
    STORE_dst((picture * dst_stacks + dst_stack0 + stack) * hw + pixel, ACTIVATE(value));
}
