// The vectors of a picture's stacks are one flat axis.
{
    const int i = GLOBAL_ID(0);
    if (i >= stacks * hw) return;
    const int picture = GROUP_ID(2);
    const FLOAT4 value = LOAD_src((picture * src_stacks + src_stack0) * hw + i);
    STORE_dst((picture * dst_stacks + dst_stack0) * hw + i, ACTIVATE(value));
}
