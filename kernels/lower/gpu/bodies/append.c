// A vector of a new row of a cache (kernels/ir/cache.py), which may be normalised and turned by its place. VALUES4: vectors of a row
// of a second cache, which gets one at the same place as it is.
#define ROW(at) LOAD_src(at)
#define SCALE(at) LOAD_norm(at)
{
    const int column = GLOBAL_ID(0);
    const int row = GLOBAL_ID(1);
    const int plane = GLOBAL_ID(2);
#ifdef VALUES4
    if (column >= IMAX(DEPTH4, VALUES4) || row >= rows) return;
#else
    if (column >= DEPTH4 || row >= rows) return;
#endif
    const int image = plane / heads;
    const int place = INT32(LOAD_ends(image)) + 1 - rows + row;
    if (place < 0 || place >= capacity) return;
#ifdef VALUES4
    if (column < VALUES4) {
        const int value_at = value_start + image * value_batch + plane % heads * value_head + row * value_row + column;
        STORE_value_cache((plane * capacity + place) * VALUES4 + column, TO_WIDE4(LOAD_new_value(value_at)));
    }
    if (column >= DEPTH4) return;
#endif
    const int from = src_start + image * src_batch + plane % heads * src_head + row * src_row;
INCLUDE turned_row
    STORE_dst((plane * capacity + place) * DEPTH4 + column, value);
}
