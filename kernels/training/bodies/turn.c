// The columns of a matrix as rows, by squares of 4 x 4 numbers that are turned in registers: a work-item takes `each` of
// them below one another, so that what it writes lies side by side. Both extents are whole vectors of four.
{
    const int x = GLOBAL_ID(0);
    if (x >= columns4) return;
    const int end = IMIN(rows4, (GROUP_ID(1) + 1) * each);
    for (int y = GROUP_ID(1) * each; y < end; ++y) {
        const int at = 4 * y * columns4 + x;
        const FLOAT4 a = LOAD_src(at);
        const FLOAT4 b = LOAD_src(at + columns4);
        const FLOAT4 c = LOAD_src(at + 2 * columns4);
        const FLOAT4 d = LOAD_src(at + 3 * columns4);
        const int to = 4 * x * rows4 + y;
        STORE_dst(to, VEC4(a.x, b.x, c.x, d.x));
        STORE_dst(to + rows4, VEC4(a.y, b.y, c.y, d.y));
        STORE_dst(to + 2 * rows4, VEC4(a.z, b.z, c.z, d.z));
        STORE_dst(to + 3 * rows4, VEC4(a.w, b.w, c.w, d.w));
    }
}
