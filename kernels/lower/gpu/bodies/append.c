// A vector of a new row of a cache (kernels/ir/cache.py), which may be normalised and turned by its place.
#define ROW(at) LOAD_src(at)
#define SCALE(at) LOAD_norm(at)
{
    const int column = GLOBAL_ID(0);
    const int row = GLOBAL_ID(1);
    const int plane = GLOBAL_ID(2);
    if (column >= DEPTH4 || row >= rows) return;
    const int image = plane / heads;
    const int place = INT32(LOAD_ends(image)) + 1 - rows + row;
    if (place < 0 || place >= capacity) return;
    const int from = src_start + image * src_batch + plane % heads * src_head + row * src_row;
INCLUDE turned_row
    STORE_dst((plane * capacity + place) * DEPTH4 + column, value);
}
