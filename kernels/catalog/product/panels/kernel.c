// ROWS rows x COLUMNS vectors of LANES columns a work-item, from a matrix in panels: PANEL vectors of four columns of every
// row, one after the other, so that whoever computes a panel reads on and on. TAIL: the depth is no multiple of four; the
// panels have rows of zeros up to one.
{
    const int first = GLOBAL_ID(0) * COLUMNS * PARTS;  // in vectors of four, as everything here
    if (first >= columns4) return;
    const int row = GROUP_ID(1) * ROWS;
    const int vectors = (depth + 3) / 4;

    WIDEV sums[SUMS];
    int a_at[ROWS];
    UNROLL for (int r = 0; r < ROWS; ++r) {
        UNROLL for (int c = 0; c < COLUMNS; ++c) sums[r * COLUMNS + c] = WIDE_VSPLAT(0.0f);
        a_at[r] = a_start + IMIN(row + r, rows - 1) * a_stride;
    }
    CHUNK_SUMS
    int b_at = first / PANEL * PANEL * 4 * vectors + first % PANEL;
    IN_CHUNKS(k, vectors, 1) {
        FLOAT4 left[ROWS];
        UNROLL for (int r = 0; r < ROWS; ++r) left[r] = LOAD_a(a_at[r] + k);
        if (TAIL != 0 && 4 * k + 4 > depth) {  // lanes that are no data may hold anything
            UNROLL for (int r = 0; r < ROWS; ++r) {
                if (depth % 4 < 2) left[r].y = ZERO;
                if (depth % 4 < 3) left[r].z = ZERO;
                left[r].w = ZERO;
            }
        }
        UNROLL for (int c = 0; c < COLUMNS; ++c) {
            const VECTOR b0 = LOADV_FROM_b(b_at + c * PARTS);
            const VECTOR b1 = LOADV_FROM_b(b_at + c * PARTS + PANEL);
            const VECTOR b2 = LOADV_FROM_b(b_at + c * PARTS + 2 * PANEL);
            const VECTOR b3 = LOADV_FROM_b(b_at + c * PARTS + 3 * PANEL);
            INCLUDE product_rows
        }
        b_at += 4 * PANEL;
        FOLD(1)
    }
    FOLD_REST
    UNROLL for (int r = 0; r < ROWS; ++r) {
        if (row + r < rows) {
            UNROLL for (int c = 0; c < COLUMNS; ++c) {
                UNROLL for (int part = 0; part < PARTS; ++part) {
                    const int column = first + c * PARTS + part;
                    if (column < columns4) {
                        WIDE4 sum = PART(sums[r * COLUMNS + c], part);
                        if (has_bias != 0) sum += TO_WIDE4(LOAD_bias(column));
                        STORE_dst(dst_start + (row + r) * dst_stride + column, ACTIVATE(sum));
                    }
                }
            }
        }
    }
}
