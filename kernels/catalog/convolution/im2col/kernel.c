// The window's taps side by side: dst [picture][tap][in stack][output pixel]; a work-item copies one vector.
{
    const int pixel = GLOBAL_ID(0);
    if (pixel >= oh * ow) return;
    const int row = GROUP_ID(1);
    const int picture = GROUP_ID(2);
    const int tap = row / in_stacks;
    const int stack = row - tap * in_stacks;
    const int ky = tap / kw;
    const int oy = pixel / ow;
    const int iy = oy * sh - pad_t + ky * dh;
    const int ix = (pixel - oy * ow) * sw - pad_l + (tap - ky * kw) * dw;
    FLOAT4 value = SPLAT(0.0f);
    if (INSIDE(iy, h) && INSIDE(ix, w)) {
        value = LOAD_src(((picture * src_stacks + src_stack0 + stack) * h + PLACE(iy, h)) * w + PLACE(ix, w));
    }
    STORE_dst((picture * kh * kw * in_stacks + row) * oh * ow + pixel, value);
}
