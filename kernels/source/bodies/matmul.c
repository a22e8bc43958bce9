// Register-tiled product: ROWS rows x COLUMNS vectors of four columns a work-item.
{
    const int column = GLOBAL_ID(0) * COLUMNS;
    if (column >= columns4) return;
    const int row = GROUP_ID(1) * ROWS;
    const int batch = GROUP_ID(2);

    FLOAT4 sums[ROWS * COLUMNS];
    UNROLL for (int c = 0; c < COLUMNS; ++c) {
        const FLOAT4 start = has_bias != 0 ? LOAD_bias(IMIN(column + c, columns4 - 1)) : SPLAT(0.0f);
        UNROLL for (int r = 0; r < ROWS; ++r) sums[r * COLUMNS + c] = start;
    }
    int b_at = batch * b_batch;
    for (int k = 0; k < depth; k += 4) {
        FLOAT4 left[ROWS];
        UNROLL for (int r = 0; r < ROWS; ++r) {
            left[r] = LOAD_a(a_start + batch * a_batch + IMIN(row + r, rows - 1) * a_stride + k / 4);
        }
        const int valid = depth - k;  // lanes of the last vector that are data
        UNROLL for (int c = 0; c < COLUMNS; ++c) {
            const int at = b_at + IMIN(column + c, columns4 - 1);
            const FLOAT4 b0 = LOAD_b(at);
            const FLOAT4 b1 = LOAD_b(at + IMIN(1, valid - 1) * b_stride);
            const FLOAT4 b2 = LOAD_b(at + IMIN(2, valid - 1) * b_stride);
            const FLOAT4 b3 = LOAD_b(at + IMIN(3, valid - 1) * b_stride);
            UNROLL for (int r = 0; r < ROWS; ++r) {
                FLOAT4 sum = sums[r * COLUMNS + c];
                sum = MAD(SPLAT(left[r].x), b0, sum);
                sum = MAD(SPLAT(valid > 1 ? left[r].y : 0.0f), b1, sum);
                sum = MAD(SPLAT(valid > 2 ? left[r].z : 0.0f), b2, sum);
                sums[r * COLUMNS + c] = MAD(SPLAT(valid > 3 ? left[r].w : 0.0f), b3, sum);
            }
        }
        b_at += 4 * b_stride;
    }
    UNROLL for (int r = 0; r < ROWS; ++r) {
        UNROLL for (int c = 0; c < COLUMNS; ++c) {
            if (row + r < rows && column + c < columns4) {
                STORE_dst(dst_start + batch * dst_batch + (row + r) * dst_stride + column + c,
                          ACTIVATE(sums[r * COLUMNS + c]));
            }
        }
    }
}
