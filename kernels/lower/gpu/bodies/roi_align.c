// Boxes of pictures at one size: each element by itself, POINTS x POINTS times between four pixels (kernels/ir/regions.py).
#define START(k) (LOAD_boxes(4 * row + (k)) * scale - shift)
#define LENGTH(from, k) START(k) - (from)
{
    const int i = GLOBAL_ID(0);
    if (i >= count) return;
    const int ox = i % ow;
    const int oy = i / ow % oh;
    const int stack = i / (ow * oh) % stacks;
    const int row = i / (ow * oh * stacks);
    FLOAT4 result = SPLAT(0.0f);
    if (FLOAT(row) < LOAD_valid(0)) {
        const float left = START(0);
        const float top = START(1);
        float wide = LENGTH(left, 2);
        float tall = LENGTH(top, 3);
        if (shift == 0.0f) {
            wide = wide > 1.0f ? wide : 1.0f;
            tall = tall > 1.0f ? tall : 1.0f;
        }
        const int picture = IMIN(IMAX(TO_INT(LOAD_pictures(row)), 0), n - 1);
        const int plane = (picture * src_stacks + src_stack0 + stack) * h * w;
        for (int py = 0; py < points; ++py) {
            float y = top + tall * DIVIDE(FLOAT(oy * points + py) + 0.5f, FLOAT(oh * points));
            const float rows = y >= -1.0f && y <= FLOAT(h) ? 1.0f : 0.0f;
            y = rows > 0.0f && y > 0.0f ? min(y, FLOAT(h - 1)) : 0.0f;
            const int y0 = TO_INT(y);
            const int y1 = IMIN(y0 + 1, h - 1);
            const float below = (y - FLOAT(y0)) * rows;
            const float above = rows - below;
            for (int px = 0; px < points; ++px) {
                float x = left + wide * DIVIDE(FLOAT(ox * points + px) + 0.5f, FLOAT(ow * points));
                const float columns = x >= -1.0f && x <= FLOAT(w) ? 1.0f : 0.0f;
                x = columns > 0.0f && x > 0.0f ? min(x, FLOAT(w - 1)) : 0.0f;
                const int x0 = TO_INT(x);
                const int x1 = IMIN(x0 + 1, w - 1);
                const float right = (x - FLOAT(x0)) * columns;
                const float before = columns - right;
                const FLOAT4 a = SPLAT(above * before) * LOAD_src(plane + y0 * w + x0);
                const FLOAT4 b = SPLAT(above * right) * LOAD_src(plane + y0 * w + x1);
                const FLOAT4 c = SPLAT(below * before) * LOAD_src(plane + y1 * w + x0);
                const FLOAT4 d = SPLAT(below * right) * LOAD_src(plane + y1 * w + x1);
#if LARGEST
                const FLOAT4 most = LARGER(LARGER(a, b), LARGER(c, d));
                result = py + px == 0 ? most : LARGER(most, result);
#else
                result += (a + b) + (c + d);
#endif
            }
        }
#if !LARGEST
        result = result * SPLAT(DIVIDE(1.0f, FLOAT(points * points)));
#endif
    }
    STORE_dst((row * dst_stacks + dst_stack0 + stack) * oh * ow + oy * ow + ox, result);
}
