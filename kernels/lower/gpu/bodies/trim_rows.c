// Rows of whole vectors -> rows of any length. One work-item a vector.
{
    const int i = GLOBAL_ID(0);
    if (i >= count) return;
    const int row = i / vectors;
    const int column = (i - row * vectors) * 4;
    const int at = row * columns + column;
    const FLOAT4 v = LOAD_src(i);
    STORE_dst(at, v.x);
    if (column + 1 < columns) { STORE_dst(at + 1, v.y); }
    if (column + 2 < columns) { STORE_dst(at + 2, v.z); }
    if (column + 3 < columns) { STORE_dst(at + 3, v.w); }
}
