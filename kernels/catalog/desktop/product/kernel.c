// Rows of both operands lie side by side. WHOLE: sizes are multiples of the tile; EIGHTS_A, EIGHTS_B: rows of the operand
// begin at multiples of eight halves, and are read eight at a time; AGAIN: the depth is a multiple of the tile's, and the
// last stage is fetched again, so that no load depends on where it is. ROWS_FIRST: work-groups follow each other down. PAIRED:
// see `fragments`; EIGHTS_OUT: rows of the result begin at multiples of eight halves, which are stored at once; DEALT_OUT: they lie as
// matrix units have them (`dealt_place`).
{
    const int me = LOCAL_ID(0);
#ifdef ROWS_FIRST
    const int first_row = GROUP_ID(0) * TILE_ROWS;
    const int first_column = GROUP_ID(1) * (2 * TILE_COLUMNS8);
#else
    const int first_row = GROUP_ID(1) * TILE_ROWS;
    const int first_column = GROUP_ID(0) * (2 * TILE_COLUMNS8);
#endif
    const int batch = GROUP_ID(2);
    const int a_from = a_start + batch * a_batch;
    const int b_from = batch * b_batch;
#define FIRST_RIGHT(c) (b_from + IMIN(first_column / 4 + across * FC + (c), (columns4 - 1) / 4) * b_stride)
#define FIRST_LEFT(r) (IMIN(first_row / 16 + down * FR + (r), (rows - 1) / 16) * a_stride * 8)
#define RIGHT_AT(i) LOAD_RAW8_b(i)
#define LOOK_HERE (first_column == 0)
#define BIAS_OF(column) (has_bias != 0 ? TO_WIDE4(LOAD_bias(IMIN(first_column + (column), columns4 - 1))) : WIDE_SPLAT(0.0f))
#if EIGHTS_A
#define LEFT_AT(i) LOAD_RAW8_a((i) / 2)
#else
#define LEFT_AT(i) RAW8_PAIR(LOAD_RAW_a(i), LOAD_RAW_a((i) + 1))
#endif
    const int stages = (depth + TILE_DEPTH - 1) / TILE_DEPTH;
    INCLUDE units_pipeline
}
