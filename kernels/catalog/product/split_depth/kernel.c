// ROWS rows times a matrix: CX vectors of four columns a work-group, the depth shared out over KY work-items each, whose
// partial sums meet in local memory. What is read of the matrix is multiplied with every row.
{
    const int me = LOCAL_ID(0);
    const int cx = me % CX;
    const int ky = me / CX;
    const int column = GROUP_ID(0) * CX + cx;
    const int row = GROUP_ID(1) * ROWS;
    const int batch = GROUP_ID(2);
    WIDE4 sums[SUMS];
    int left_at[ROWS];
    UNROLL for (int r = 0; r < ROWS; ++r) {
        sums[r] = WIDE_SPLAT(0.0f);
        left_at[r] = a_start + batch * a_batch + IMIN(row + r, rows - 1) * a_stride;
    }
    CHUNK_SUMS
    if (column < columns4) {
        const int vectors = depth / 4;
        const int right_at = batch * b_batch + column;
        int q = ky;
        for (; q + (TURNS - 1) * KY < vectors; q += TURNS * KY) {  // so many reads on their way at once
            UNROLL for (int turn = 0; turn < TURNS; ++turn) {
                const int k = q + turn * KY;
                const int at = right_at + 4 * k * b_stride;
                const FLOAT4 b0 = LOAD_b(at);
                const FLOAT4 b1 = LOAD_b(at + b_stride);
                const FLOAT4 b2 = LOAD_b(at + 2 * b_stride);
                const FLOAT4 b3 = LOAD_b(at + 3 * b_stride);
                UNROLL for (int r = 0; r < ROWS; ++r) {
                    const FLOAT4 left = LOAD_a(left_at[r] + k);
                    FLOAT4 sum = MAD(SPLAT(left.x), b0, chunk[r]);
                    sum = MAD(SPLAT(left.y), b1, sum);
                    sum = MAD(SPLAT(left.z), b2, sum);
                    chunk[r] = MAD(SPLAT(left.w), b3, sum);
                }
            }
            FOLD(TURNS)
        }
        for (; 4 * q < depth; q += KY) {
            const int valid = depth - 4 * q;  // lanes of the last vector that are data
            const int at = right_at + 4 * q * b_stride;
            UNROLL for (int r = 0; r < ROWS; ++r) {
                const FLOAT4 left = LOAD_a(left_at[r] + q);
                FLOAT4 sum = MAD(SPLAT(left.x), LOAD_b(at), chunk[r]);
                if (valid > 1) sum = MAD(SPLAT(left.y), LOAD_b(at + b_stride), sum);
                if (valid > 2) sum = MAD(SPLAT(left.z), LOAD_b(at + 2 * b_stride), sum);
                if (valid > 3) sum = MAD(SPLAT(left.w), LOAD_b(at + 3 * b_stride), sum);
                chunk[r] = sum;
            }
            FOLD(1)
        }
    }
    FOLD_REST
    for (int half_way = KY / 2; half_way > 0; half_way /= 2) {  // the upper half hands its sums to the lower
        if (ky >= half_way && ky < 2 * half_way) {
            UNROLL for (int r = 0; r < ROWS; ++r) partial[r * UPPER + me - half_way * CX] = sums[r];
        }
        BARRIER;
        if (ky < half_way) {
            UNROLL for (int r = 0; r < ROWS; ++r) sums[r] += partial[r * UPPER + me];
        }
        BARRIER;
    }
    if (ky == 0 && column < columns4) {
        UNROLL for (int r = 0; r < ROWS; ++r) {
            if (row + r < rows) {
                WIDE4 whole = sums[r];
                if (has_bias != 0) whole += TO_WIDE4(LOAD_bias(column));
                STORE_dst(dst_start + batch * dst_batch + (row + r) * dst_stride + column, ACTIVATE(whole));
            }
        }
    }
}
