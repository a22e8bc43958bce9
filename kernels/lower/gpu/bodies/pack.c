// Plain NCHW -> stacks of four channels; lanes beyond the last channel become zero.
{
    const int stack = GLOBAL_ID(0) / hw;
    const int pixel = GLOBAL_ID(0) - stack * hw;
    const int c = stack * 4;
    if (c >= channels) return;
    const int picture = GROUP_ID(2);
    const int base = (picture * channels + c) * hw + pixel;
    const float x = LOAD_src(base);
    const float y = c + 1 < channels ? LOAD_src(base + hw) : 0.0f;
    const float z = c + 2 < channels ? LOAD_src(base + 2 * hw) : 0.0f;
    const float w = c + 3 < channels ? LOAD_src(base + 3 * hw) : 0.0f;
    STORE_dst((picture * dst_stacks + dst_stack0 + stack) * hw + pixel, VEC4(x, y, z, w));
}
