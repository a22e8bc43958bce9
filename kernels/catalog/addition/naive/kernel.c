// One number a work-item; both tensors have one shape.
{
    const int i = GLOBAL_ID(0);
    if (i >= 4 * stacks * hw) return;
    const int picture = GROUP_ID(2);
    const float left = LOAD_a(4 * (picture * a_stacks + a_stack0) * hw + i);
    const float right = LOAD_b(4 * (picture * b_stacks + b_stack0) * hw + i);
    const float value = multiply != 0 ? left * right : left + right;
    STORE_dst(4 * (picture * dst_stacks + dst_stack0) * hw + i, ACTIVATE1(value));
}
