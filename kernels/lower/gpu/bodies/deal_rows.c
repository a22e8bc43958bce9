// Rows as matrix units have them, see `dealt_place`; one work-item a vector.
{
    INCLUDE dealt_place
    const int i = GLOBAL_ID(0);
    if (i >= count) return;
    const int row = i / columns4;
    const int column = i - row * columns4;
    STORE_dst(DEALT_AT(row, column), TO_WIDE4(LOAD_src(src_start + row * src_stride + column)));
}
