// Stacks of four channels -> plain NCHW.
{
    const int stack = GLOBAL_ID(0) / hw;
    const int pixel = GLOBAL_ID(0) - stack * hw;
    const int c = stack * 4;
    if (c >= channels) return;
    const int picture = GROUP_ID(2);
    const FLOAT4 v = LOAD_src((picture * src_stacks + src_stack0 + stack) * hw + pixel);
    const int base = (picture * channels + c) * hw + pixel;
    STORE_dst(base, v.x);
    if (c + 1 < channels) { STORE_dst(base + hw, v.y); }
    if (c + 2 < channels) { STORE_dst(base + 2 * hw, v.z); }
    if (c + 3 < channels) { STORE_dst(base + 3 * hw, v.w); }
}
