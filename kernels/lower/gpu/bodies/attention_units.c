// One work-group 32 rows of q and one head, on matrix units: four subgroups multiply 16 of 64 keys each, and then a
// quarter of the columns. In between four work-items have a row: scores, then weights in halves in their place, and the result, which is
// scaled anew where the row's maximum grows. Sums of the result take the place of the keys.
{
#define ONLY_KEYS(v) \
    if (left_keys < 1) v.x = -3.4028234e38f; \
    if (left_keys < 2) v.y = -3.4028234e38f; \
    if (left_keys < 3) v.z = -3.4028234e38f; \
    if (left_keys < 4) v.w = -3.4028234e38f
    const int me = LOCAL_ID(0);
    const int row = me / 4;
    const int quarter = me % 4;
    const int first_row = GROUP_ID(0) * 32;
    const int head = GROUP_ID(1);
    const int batch = GROUP_ID(2);
    const int q_from = (q_start + batch * q_batch + head * q_head) / 2;
    const int k_from = (k_start + batch * k_batch + head * k_head) / 2;
    const int v_from = (v_start + batch * v_batch + head * v_head) / 2;
    for (int at = me; at < 32 * DEPTH8; at += GROUP) {
        const int line = IMIN(first_row + at / DEPTH8, rows - 1);
        tile[at / DEPTH8 * PITCH_QK + at % DEPTH8] = LOAD_RAW8_q(q_from + line * (q_row / 2) + at % DEPTH8);
    }
    WIDE4 out_row[OUT];
    UNROLL for (int i = 0; i < OUT; ++i) out_row[i] = WIDE_SPLAT(0.0f);
    float most = -3.4028234e38f;
    float whole = 0.0f;
    for (int first_key = 0; first_key < keys; first_key += 64) {
        for (int at = me; at < 64 * DEPTH8; at += GROUP) {
            const int line = IMIN(first_key + at / DEPTH8, keys - 1);
            tile[START_K + at / DEPTH8 * PITCH_QK + at % DEPTH8] = LOAD_RAW8_k(k_from + line * (k_row / 2) + at % DEPTH8);
        }
        for (int at = me; at < 64 * COLUMNS8; at += GROUP) {
            const int line = IMIN(first_key + at / COLUMNS8, keys - 1);
            tile[START_V + at / COLUMNS8 * PITCH_V + at % COLUMNS8] = LOAD_RAW8_v(v_from + line * (v_row / 2) + at % COLUMNS8);
        }
        BARRIER;
        {
            MATRIX_SUM sums[2];
            UNROLL for (int r = 0; r < 2; ++r) sums[r] = NO_SUM;
            UNROLL for (int d = 0; d < STEPS; ++d) {
                MATRIX_RIGHT right;
                LOAD_COLUMNS(right, tile, START_K + SUBGROUP * 16 * PITCH_QK + d * 2, PITCH_QK);
                UNROLL for (int r = 0; r < 2; ++r) {
                    MATRIX_LEFT left;
                    LOAD_LEFT(left, tile, r * 16 * PITCH_QK + d * 2, PITCH_QK);
                    sums[r] = MULTIPLY_ADD(left, right, sums[r]);
                }
            }
            UNROLL for (int r = 0; r < 2; ++r) {
                STORE_MATRIX(sums[r], tile, START_SCORE + r * 16 * 17 + SUBGROUP * 4, 17);
            }
        }
        BARRIER;
        float top = most;
        for (int i = 0; i < 16; ++i) {
            const int left_keys = keys - first_key - 4 * i;
            WIDE4 score = FROM_BITS(tile[START_SCORE + row * 17 + i]) * WIDE_SPLAT(scale);
            ONLY_KEYS(score);
            top = MAX(top, MAX(MAX(score.x, score.y), MAX(score.z, score.w)));
        }
        const float factor = EXP(most - top);
        most = top;
        whole *= factor;
        UNROLL for (int i = 0; i < OUT; ++i) out_row[i] *= WIDE_SPLAT(factor);
        WIDE4 weight[4];
        UNROLL for (int i = 0; i < 4; ++i) {
            const int left_keys = keys - first_key - 4 * (quarter * 4 + i);
            WIDE4 score = FROM_BITS(tile[START_SCORE + row * 17 + quarter * 4 + i]) * WIDE_SPLAT(scale);
            ONLY_KEYS(score);
            weight[i] = EXP(score - WIDE_SPLAT(top));
            whole += weight[i].x + weight[i].y + weight[i].z + weight[i].w;
        }
        BARRIER;
        PUT_HALVES(tile, START_SCORE + row * 17 + quarter * 2, weight[0], weight[1]);
        PUT_HALVES(tile, START_SCORE + row * 17 + quarter * 2 + 1, weight[2], weight[3]);
        BARRIER;
        UNROLL for (int c = 0; c < ACROSS; ++c) {
            MATRIX_SUM sums[2];
            UNROLL for (int r = 0; r < 2; ++r) sums[r] = NO_SUM;
            UNROLL for (int k = 0; k < 4; ++k) {
                MATRIX_RIGHT right;
                LOAD_ROWS(right, tile, START_V + k * 16 * PITCH_V + (SUBGROUP * ACROSS + c) * 2, PITCH_V);
                UNROLL for (int r = 0; r < 2; ++r) {
                    MATRIX_LEFT left;
                    LOAD_LEFT(left, tile, START_SCORE + r * 16 * 17 + k * 2, 17);
                    sums[r] = MULTIPLY_ADD(left, right, sums[r]);
                }
            }
            UNROLL for (int r = 0; r < 2; ++r) {
                STORE_MATRIX(sums[r], tile, START_K + r * 16 * PITCH_OUT + (SUBGROUP * ACROSS + c) * 4, PITCH_OUT);
            }
        }
        BARRIER;
        UNROLL for (int i = 0; i < OUT; ++i) out_row[i] += FROM_BITS(tile[START_K + row * PITCH_OUT + quarter * OUT + i]);
        BARRIER;
    }
    tile[START_SCORE + me] = TO_BITS(WIDE_SPLAT(whole));
    BARRIER;
    float all = 0.0f;
    for (int j = 0; j < 4; ++j) all += FROM_BITS(tile[START_SCORE + 4 * row + j]).x;
    const int to = dst_start + batch * dst_batch + head * dst_head + (first_row + row) * dst_row;
    if (first_row + row < rows) {
        UNROLL for (int i = 0; i < OUT; ++i) STORE_dst(to + quarter * OUT + i, out_row[i] / WIDE_SPLAT(all));
    }
}
