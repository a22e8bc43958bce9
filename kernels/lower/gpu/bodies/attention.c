// One work-group 4 * GY rows of q and one head: 64 keys a turn. A work-item has four rows and four keys of the scores,
// and the same four rows of OUT vectors of the result, which are scaled anew where a row's maximum grows. q, and k and v
// by turns, lie in local memory; keys so that neighbours read neighbours.
{
#define LARGEST(v) MAX(MAX((v).x, (v).y), MAX((v).z, (v).w))
    const int me = LOCAL_ID(0);
    const int tx = me % 16;
    const int ty = me / 16;
    const int first_row = GROUP_ID(0) * (4 * GY);
    const int batch = GROUP_ID(2);
    const int head = GROUP_ID(1);
    const int q_from = q_start + batch * q_batch + head * q_head;
    const int k_from = k_start + batch * k_batch + head * k_head;
    const int v_from = v_start + batch * v_batch + head * v_head;
    for (int at = me; at < 4 * GY * DEPTH4; at += GROUP) {
        const int row = IMIN(first_row + at / DEPTH4, rows - 1);
        const WIDE4 value = TO_WIDE4(LOAD_q(q_from + row * q_row + at % DEPTH4)) * WIDE_SPLAT(scale);
        tile_q[at % DEPTH4 * PITCH_Q + at / DEPTH4] = value;
    }
    WIDE4 sums[SUMS];
    UNROLL for (int i = 0; i < SUMS; ++i) sums[i] = WIDE_SPLAT(0.0f);
    WIDE4 most = WIDE_SPLAT(-3.4028234e38f);  // of four rows
    WIDE4 whole = WIDE_SPLAT(0.0f);
    for (int first_key = 0; first_key < keys; first_key += 64) {
        for (int at = me; at < 64 * DEPTH4; at += GROUP) {
            const int key = at / DEPTH4;
            const int from = k_from + IMIN(first_key + key, keys - 1) * k_row + at % DEPTH4;
            tile[at % DEPTH4 * 65 + key % 4 * 16 + key / 4] = TO_WIDE4(LOAD_k(from));
        }
        BARRIER;
        WIDE4 score[4];  // of four rows, each of four keys
        UNROLL for (int r = 0; r < 4; ++r) score[r] = WIDE_SPLAT(0.0f);
        for (int d = 0; d < DEPTH4; ++d) {
            WIDE4 left[4];
            UNROLL for (int r = 0; r < 4; ++r) left[r] = tile_q[d * PITCH_Q + 4 * ty + r];
            const WIDE4 k0 = tile[d * 65 + tx];
            const WIDE4 k1 = tile[d * 65 + 16 + tx];
            const WIDE4 k2 = tile[d * 65 + 32 + tx];
            const WIDE4 k3 = tile[d * 65 + 48 + tx];
            UNROLL for (int r = 0; r < 4; ++r) {
                score[r] = MAD(WIDE_SPLAT(left[r].x), WIDE_VEC4(k0.x, k1.x, k2.x, k3.x), score[r]);
                score[r] = MAD(WIDE_SPLAT(left[r].y), WIDE_VEC4(k0.y, k1.y, k2.y, k3.y), score[r]);
                score[r] = MAD(WIDE_SPLAT(left[r].z), WIDE_VEC4(k0.z, k1.z, k2.z, k3.z), score[r]);
                score[r] = MAD(WIDE_SPLAT(left[r].w), WIDE_VEC4(k0.w, k1.w, k2.w, k3.w), score[r]);
            }
        }
        const int left_keys = keys - first_key - 4 * tx;
        WIDE4 mine;
        UNROLL for (int r = 0; r < 4; ++r) {
            if (left_keys < 1) score[r].x = -3.4028234e38f;
            if (left_keys < 2) score[r].y = -3.4028234e38f;
            if (left_keys < 3) score[r].z = -3.4028234e38f;
            if (left_keys < 4) score[r].w = -3.4028234e38f;
        }
        mine.x = LARGEST(score[0]);
        mine.y = LARGEST(score[1]);
        mine.z = LARGEST(score[2]);
        mine.w = LARGEST(score[3]);
        meeting[me] = mine;
        BARRIER;
        WIDE4 now = most;
        for (int i = 0; i < 16; ++i) now = MAX(now, meeting[16 * ty + i]);
        const WIDE4 factor = EXP(most - now);
        most = now;
        weight[(4 * ty + 0) * 17 + tx] = EXP(score[0] - WIDE_SPLAT(now.x));
        weight[(4 * ty + 1) * 17 + tx] = EXP(score[1] - WIDE_SPLAT(now.y));
        weight[(4 * ty + 2) * 17 + tx] = EXP(score[2] - WIDE_SPLAT(now.z));
        weight[(4 * ty + 3) * 17 + tx] = EXP(score[3] - WIDE_SPLAT(now.w));
        for (int at = me; at < 64 * COLUMNS4; at += GROUP) {
            const int key = IMIN(first_key + at / COLUMNS4, keys - 1);
            tile[at] = TO_WIDE4(LOAD_v(v_from + key * v_row + at % COLUMNS4));
        }
        whole *= factor;
        UNROLL for (int j = 0; j < OUT; ++j) {
            sums[j] *= WIDE_SPLAT(factor.x);
            sums[OUT + j] *= WIDE_SPLAT(factor.y);
            sums[2 * OUT + j] *= WIDE_SPLAT(factor.z);
            sums[3 * OUT + j] *= WIDE_SPLAT(factor.w);
        }
        BARRIER;
        for (int key4 = 0; key4 < 16; ++key4) {
            WIDE4 p[4];
            UNROLL for (int r = 0; r < 4; ++r) p[r] = weight[(4 * ty + r) * 17 + key4];
            whole.x += p[0].x + p[0].y + p[0].z + p[0].w;
            whole.y += p[1].x + p[1].y + p[1].z + p[1].w;
            whole.z += p[2].x + p[2].y + p[2].z + p[2].w;
            whole.w += p[3].x + p[3].y + p[3].z + p[3].w;
            UNROLL for (int j = 0; j < OUT; ++j) {
                const int column = IMIN(tx + 16 * j, COLUMNS4 - 1);
                const WIDE4 v0 = tile[(4 * key4 + 0) * COLUMNS4 + column];
                const WIDE4 v1 = tile[(4 * key4 + 1) * COLUMNS4 + column];
                const WIDE4 v2 = tile[(4 * key4 + 2) * COLUMNS4 + column];
                const WIDE4 v3 = tile[(4 * key4 + 3) * COLUMNS4 + column];
                UNROLL for (int r = 0; r < 4; ++r) {
                    WIDE4 sum = sums[r * OUT + j];
                    sum = MAD(WIDE_SPLAT(p[r].x), v0, sum);
                    sum = MAD(WIDE_SPLAT(p[r].y), v1, sum);
                    sum = MAD(WIDE_SPLAT(p[r].z), v2, sum);
                    sums[r * OUT + j] = MAD(WIDE_SPLAT(p[r].w), v3, sum);
                }
            }
        }
        BARRIER;
    }
    const int to = dst_start + batch * dst_batch + head * dst_head;
    UNROLL for (int j = 0; j < OUT; ++j) {
        const int column = tx + 16 * j;
        UNROLL for (int r = 0; r < 4; ++r) {
            const int row = first_row + 4 * ty + r;
            const float all = r == 0 ? whole.x : r == 1 ? whole.y : r == 2 ? whole.z : whole.w;
            if (row < rows && column < COLUMNS4) STORE_dst(to + row * dst_row + column, sums[r * OUT + j] / WIDE_SPLAT(all));
        }
    }
}
