// ROWS rows x COLUMNS vectors of LANES columns a work-item, without local memory. A tile that would reach over the end of
// a row starts further left, inside; it stores only what is its own. TAIL: the depth is no multiple of four.
{
    const int own = GLOBAL_ID(0) * COLUMNS * PARTS;  // in vectors of four, as everything here
    if (own >= columns4) return;
    const int first = IMIN(own, columns4 - COLUMNS * PARTS);
    const int row = GROUP_ID(1) * ROWS;
    const int batch = GROUP_ID(2);

    WIDEV sums[SUMS];
    int a_at[ROWS];
    UNROLL for (int r = 0; r < ROWS; ++r) {
        UNROLL for (int c = 0; c < COLUMNS; ++c) sums[r * COLUMNS + c] = WIDE_VSPLAT(0.0f);
        a_at[r] = a_start + batch * a_batch + IMIN(row + r, rows - 1) * a_stride;
    }
    CHUNK_SUMS
    int b_at = batch * b_batch + first;
    IN_CHUNKS(k, depth / 4, 1) {
        FLOAT4 left[ROWS];
        UNROLL for (int r = 0; r < ROWS; ++r) left[r] = LOAD_a(a_at[r] + k);
        UNROLL for (int c = 0; c < COLUMNS; ++c) {
            const VECTOR b0 = LOADV_FROM_b(b_at + c * PARTS);
            const VECTOR b1 = LOADV_FROM_b(b_at + c * PARTS + b_stride);
            const VECTOR b2 = LOADV_FROM_b(b_at + c * PARTS + 2 * b_stride);
            const VECTOR b3 = LOADV_FROM_b(b_at + c * PARTS + 3 * b_stride);
            INCLUDE product_rows
        }
        b_at += 4 * b_stride;
        FOLD(1)
    }
    if (TAIL != 0) {
        const int valid = depth % 4;  // lanes of the last vector that are data
        FLOAT4 left[ROWS];
        UNROLL for (int r = 0; r < ROWS; ++r) left[r] = LOAD_a(a_at[r] + depth / 4);
        UNROLL for (int c = 0; c < COLUMNS; ++c) {
            const VECTOR b0 = LOADV_FROM_b(b_at + c * PARTS);
            UNROLL for (int r = 0; r < ROWS; ++r) {
                chunk[r * COLUMNS + c] = MAD(VSPLAT(left[r].x), b0, chunk[r * COLUMNS + c]);
            }
            if (valid > 1) {
                const VECTOR b1 = LOADV_FROM_b(b_at + c * PARTS + b_stride);
                UNROLL for (int r = 0; r < ROWS; ++r) {
                    chunk[r * COLUMNS + c] = MAD(VSPLAT(left[r].y), b1, chunk[r * COLUMNS + c]);
                }
            }
            if (valid > 2) {
                const VECTOR b2 = LOADV_FROM_b(b_at + c * PARTS + 2 * b_stride);
                UNROLL for (int r = 0; r < ROWS; ++r) {
                    chunk[r * COLUMNS + c] = MAD(VSPLAT(left[r].z), b2, chunk[r * COLUMNS + c]);
                }
            }
        }
    }
    FOLD_REST
    UNROLL for (int r = 0; r < ROWS; ++r) {
        if (row + r < rows) {
            UNROLL for (int c = 0; c < COLUMNS; ++c) {
                UNROLL for (int part = 0; part < PARTS; ++part) {
                    const int column = first + c * PARTS + part;
                    if (column >= own) {
                        WIDE4 sum = PART(sums[r * COLUMNS + c], part);
                        if (has_bias != 0) sum += TO_WIDE4(LOAD_bias(column));
                        STORE_dst(dst_start + batch * dst_batch + (row + r) * dst_stride + column, ACTIVATE(sum));
                    }
                }
            }
        }
    }
}
