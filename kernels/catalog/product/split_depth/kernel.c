// One row times a matrix: CX vectors of four columns a work-group, the depth shared out over KY work-items each, whose
// partial sums meet in local memory.
{
    const int me = LOCAL_ID(0);
    const int cx = me % CX;
    const int ky = me / CX;
    const int column = GROUP_ID(0) * CX + cx;
    const int row = GROUP_ID(1);
    const int batch = GROUP_ID(2);
    WIDE4 sums[SUMS];
    sums[0] = WIDE_SPLAT(0.0f);
    CHUNK_SUMS
    if (column < columns4) {
        const int vectors = depth / 4;
        const int left_at = a_start + batch * a_batch + row * a_stride;
        const int right_at = batch * b_batch + column;
        int q = ky;
        for (; q + (TURNS - 1) * KY < vectors; q += TURNS * KY) {  // so many reads on their way at once
            UNROLL for (int turn = 0; turn < TURNS; ++turn) {
                const FLOAT4 left = LOAD_a(left_at + q + turn * KY);
                const int at = right_at + 4 * (q + turn * KY) * b_stride;
                FLOAT4 sum = MAD(SPLAT(left.x), LOAD_b(at), chunk[0]);
                sum = MAD(SPLAT(left.y), LOAD_b(at + b_stride), sum);
                sum = MAD(SPLAT(left.z), LOAD_b(at + 2 * b_stride), sum);
                chunk[0] = MAD(SPLAT(left.w), LOAD_b(at + 3 * b_stride), sum);
            }
            FOLD(TURNS)
        }
        for (; 4 * q < depth; q += KY) {
            const FLOAT4 left = LOAD_a(left_at + q);
            const int valid = depth - 4 * q;  // lanes of the last vector that are data
            const int at = right_at + 4 * q * b_stride;
            FLOAT4 sum = MAD(SPLAT(left.x), LOAD_b(at), chunk[0]);
            if (valid > 1) sum = MAD(SPLAT(left.y), LOAD_b(at + b_stride), sum);
            if (valid > 2) sum = MAD(SPLAT(left.z), LOAD_b(at + 2 * b_stride), sum);
            if (valid > 3) sum = MAD(SPLAT(left.w), LOAD_b(at + 3 * b_stride), sum);
            chunk[0] = sum;
            FOLD(1)
        }
    }
    FOLD_REST
    partial[me] = sums[0];
    BARRIER;
    for (int half_way = KY / 2; half_way > 0; half_way /= 2) {
        if (ky < half_way) partial[me] += partial[me + half_way * CX];
        BARRIER;
    }
    if (ky == 0 && column < columns4) {
        WIDE4 whole = partial[cx];
        if (has_bias != 0) whole += TO_WIDE4(LOAD_bias(column));
        STORE_dst(dst_start + batch * dst_batch + row * dst_stride + column, ACTIVATE(whole));
    }
}
