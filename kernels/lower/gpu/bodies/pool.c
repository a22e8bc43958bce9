// mode 0: maximum; 1: average over valid elements; 2: average over the window, pads counted.
{
    const int pixel = GLOBAL_ID(0);
    if (pixel >= oh * ow) return;
    const int oy = pixel / ow;
    const int ox = pixel - oy * ow;
    const int stack = GROUP_ID(1);
    const int picture = GROUP_ID(2);
    const int top = oy * sh - pad_t;
    const int left = ox * sw - pad_l;
    const int y0 = IMAX(top, 0);
    const int y1 = IMIN(top + kh, h);
    const int x0 = IMAX(left, 0);
    const int x1 = IMIN(left + kw, w);
    const int plane = (picture * src_stacks + src_stack0 + stack) * h * w;
    FLOAT4 best = SPLAT(LOWEST);
    FLOAT4 sum = SPLAT(0.0f);
    for (int y = y0; y < y1; ++y) {
        FLOAT4 row = SPLAT(0.0f);
        for (int x = x0; x < x1; ++x) {
            const FLOAT4 value = LOAD_src(plane + y * w + x);
            best = LARGER(value, best);
            row += value;
        }
        sum += row;
    }
    const int whole = (IMIN(top + kh, h + pad_b) - top) * (IMIN(left + kw, w + pad_r) - left);
    const int count = mode == 2 ? whole : IMAX((y1 - y0) * (x1 - x0), 1);
    const FLOAT4 pooled = mode == 0 ? best : sum / SPLAT(FLOAT(count));
    const FLOAT4 found = pooled;
    const int to = picture * dst_stacks + dst_stack0 + stack;
    STORE_dst(to * oh * ow + pixel, found);
}
