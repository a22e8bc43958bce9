// The columns of a matrix as rows: a square of 4 x 4 numbers a work-item, turned in registers. Both extents are whole
// vectors of four.
{
    const int x = GLOBAL_ID(0);
    const int y = GLOBAL_ID(1);
    if (x >= columns4) return;
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
