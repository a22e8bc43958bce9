// Squares of EDGE x EDGE through local memory: the source is read along its contiguous axis (`along`), the result written
// along its own (`across`). The pitch is odd, so that columns of a square lie in different banks. LINES lines at once.
{
    const int x = LOCAL_ID(0) % EDGE;
    const int y = LOCAL_ID(0) / EDGE;
    const int first_across = GROUP_ID(0) * EDGE;
    const int first_along = GROUP_ID(1) * EDGE;
    const int outer = GROUP_ID(2) / inner;
    const int plane = GROUP_ID(2) - outer * inner;
    const int src_at = outer * src_outer + plane * src_inner;
    const int dst_at = outer * dst_outer + plane * dst_inner;
    for (int line = y; line < EDGE; line += LINES) {
        if (first_along + x < along && first_across + line < across) {
            square[line * PITCH + x] = LOAD_src(src_at + (first_across + line) * src_across + first_along + x);
        }
    }
    BARRIER;
    for (int line = y; line < EDGE; line += LINES) {
        if (first_across + x < across && first_along + line < along) {
            STORE_dst(dst_at + (first_along + line) * dst_along + first_across + x, square[x * PITCH + line]);
        }
    }
}
