// Source coordinate of row o: (o * step_y + start_y) / divisor_y, kept inside; columns likewise. In whole numbers.
{
    const int pixel = GLOBAL_ID(0);
    if (pixel >= oh * ow) return;
    const int oy = pixel / ow;
    const int ox = pixel - oy * ow;
    const int stack = GROUP_ID(1);
    const int picture = GROUP_ID(2);
    const int plane = (picture * src_stacks + src_stack0 + stack) * h * w;
    const int y = IMIN(IMAX(oy * step_y + start_y, 0), (h - 1) * divisor_y);
    const int x = IMIN(IMAX(ox * step_x + start_x, 0), (w - 1) * divisor_x);
    const int y0 = y / divisor_y;
    const int x0 = x / divisor_x;
    FLOAT4 result = LOAD_src(plane + y0 * w + x0);
    if (linear != 0) {
        const int y1 = IMIN(y0 + 1, h - 1);
        const int x1 = IMIN(x0 + 1, w - 1);
        const FLOAT4 down = SPLAT(FLOAT(y - y0 * divisor_y) / FLOAT(divisor_y));
        const FLOAT4 right = SPLAT(FLOAT(x - x0 * divisor_x) / FLOAT(divisor_x));
        const FLOAT4 corner = LOAD_src(plane + y1 * w + x0);
        const FLOAT4 left = SPLAT(1.0f) - right;
        const FLOAT4 above = MAD(right, LOAD_src(plane + y0 * w + x1), left * result);
        const FLOAT4 below = MAD(right, LOAD_src(plane + y1 * w + x1), left * corner);
        result = MAD(down, below, (SPLAT(1.0f) - down) * above);
    }
    STORE_dst((picture * dst_stacks + dst_stack0 + stack) * oh * ow + pixel, result);
}
