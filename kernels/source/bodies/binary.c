{
    const int pixel = GLOBAL_ID(0);
    if (pixel >= hw) return;
    const int stack = GROUP_ID(1);
    const int picture = GROUP_ID(2);
    const FLOAT4 left = LOAD_a((picture * a_stacks + a_stack0 + stack) * hw + pixel);
    const FLOAT4 right = LOAD_b(by_channel != 0 ? stack : (picture * b_stacks + b_stack0 + stack) * hw + pixel);
    const FLOAT4 value = multiply != 0 ? left * right : left + right;
    STORE_dst((picture * dst_stacks + dst_stack0 + stack) * hw + pixel, ACTIVATE(value));
}
