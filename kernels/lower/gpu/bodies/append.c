// A vector of a cache (kernels/ir/cache.py): of a new row, which may be normalised and turned by its place, or as it was.
{
    const int column = GLOBAL_ID(0);
    const int place = GLOBAL_ID(1);
    const int plane = GLOBAL_ID(2);
    if (column >= DEPTH4 || place >= capacity) return;
    const int image = plane / heads;
    const int row = place - (INT32(LOAD_ends(image)) + 1 - rows);
    const int to = (plane * capacity + place) * DEPTH4 + column;
    if (row < 0 || row >= rows) {
        STORE_dst(to, LOAD_past(to));
        return;
    }
    const int from = src_start + image * src_batch + plane % heads * src_head + row * src_row;
INCLUDE turned_row
    STORE_dst(to, value);
}
