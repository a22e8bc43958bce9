// Planes of `rows` x `columns` vectors turned, EDGE x EDGE of them through local memory, LINES lines at once.
{
    const int x = LOCAL_ID(0) % EDGE;
    const int y = LOCAL_ID(0) / EDGE;
    const int first_column = GROUP_ID(0) * EDGE;
    const int first_row = GROUP_ID(1) * EDGE;
    const int src_at = GROUP_ID(2) * src_plane + src_start;
    const int dst_at = GROUP_ID(2) * dst_plane + dst_start;
    for (int line = 0; line < EDGE; line += LINES) {
        const int row = first_row + line + y;
        if (row < rows && first_column + x < columns) {
            square[(line + y) * PITCH + x] = LOAD_src(src_at + row * columns + first_column + x);
        }
    }
    BARRIER;
    for (int line = 0; line < EDGE; line += LINES) {
        const int column = first_column + line + y;
        if (column < columns && first_row + x < rows) {
            STORE_dst(dst_at + column * rows + first_row + x, square[x * PITCH + line + y]);
        }
    }
}
