// Rows of any length -> rows of whole vectors; lanes beyond the last column become zero. One work-item a vector.
{
    const int i = GLOBAL_ID(0);
    if (i >= count) return;
    const int row = i / vectors;
    const int column = (i - row * vectors) * 4;
    const int at = row * columns + column;
    const float x = LOAD_src(at);
    const float y = column + 1 < columns ? LOAD_src(at + 1) : 0.0f;
    const float z = column + 2 < columns ? LOAD_src(at + 2) : 0.0f;
    const float w = column + 3 < columns ? LOAD_src(at + 3) : 0.0f;
    STORE_dst(i, VEC4(x, y, z, w));
}
