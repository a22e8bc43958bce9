// mode 0: `value` around the image; 1: its mirror image, the edge itself not repeated; 2: its edge.
{
    const int pixel = GLOBAL_ID(0);
    if (pixel >= oh * ow) return;
    const int oy = pixel / ow;
    const int y = oy - pad_t;
    const int x = pixel - oy * ow - pad_l;
    const int stack = GROUP_ID(1);
    const int picture = GROUP_ID(2);
    const int below = y < 0 ? -y : y;
    const int right = x < 0 ? -x : x;
    const int iy = mode == 1 ? (below >= h ? 2 * (h - 1) - below : below) : IMIN(IMAX(y, 0), h - 1);
    const int ix = mode == 1 ? (right >= w ? 2 * (w - 1) - right : right) : IMIN(IMAX(x, 0), w - 1);
    const FLOAT4 loaded = LOAD_src(((picture * src_stacks + src_stack0 + stack) * h + iy) * w + ix);
    const bool outside = mode == 0 && (y < 0 || y >= h || x < 0 || x >= w);
    FLOAT4 result = outside ? SPLAT(value) : loaded;
    TRIM(stack == LAST_STACK, result)
    STORE_dst((picture * dst_stacks + dst_stack0 + stack) * oh * ow + pixel, result);
}
