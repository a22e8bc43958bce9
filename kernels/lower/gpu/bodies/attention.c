// One work-group EACH * GY rows of q and one head: KEYS keys a turn. A work-item has EACH rows and HALVES times four keys of the
// scores, and the same rows of OUT vectors of the result, which are scaled anew where a row's maximum grows. Neighbours
// are eight work-items along the keys. q, and k and v by turns, lie in local memory; keys so that neighbours read neighbours.
// BIASED: a constant is added to the scores. LISTED: row r of a window is a row of its picture that a list names. COSINE: rows
// of q and k are divided by their lengths, and q multiplied by a factor of the head. CACHED: keys and values are rows of a cache
// (kernels/ir/cache.py), of which a row sees those up to its own place; q is turned, and heads share those of the cache.
{
#ifdef LISTED
#define PLACED(r) TO_INT(LOAD_places(window * rows + (r)))
    const int window = GROUP_ID(2) % windows;
    const int batch = GROUP_ID(2) / windows;
#else
#define PLACED(r) (r)
    const int batch = GROUP_ID(2);
#endif
#ifdef COSINE
#define DIVIDED(value, load, from, by) { \
        WIDE4 squares = WIDE_SPLAT(0.0f); \
        for (int d = 0; d < DEPTH4; ++d) { \
            const WIDE4 part = TO_WIDE4(load((from) + d)); \
            squares = MAD(part, part, squares); \
        } \
        value *= WIDE_SPLAT((by) / MAX(SQRT(squares.x + squares.y + squares.z + squares.w), least)); \
    }
    const float factor_of_head = LOAD_factors(GROUP_ID(1));
#else
#define DIVIDED(value, load, from, by)
#endif
    const int me = LOCAL_ID(0);
    const int tx = me % 8;
    const int ty = me / 8;
    const int first_row = GROUP_ID(0) * TILE_ROWS;
    const int head = GROUP_ID(1);
    const int q_from = q_start + batch * q_batch + head * q_head;
#ifdef CACHED
INCLUDE rows_of_a_cache
    const int keys = OWN(first_row + TILE_ROWS - 1) + 1;
    const int begin = LEAST(OWN(first_row));
    const int k_from = plane * DEPTH4;
    const int k_row = DEPTH4;
    const int v_from = plane * COLUMNS4;
    const int v_row = COLUMNS4;
#else
    const int begin = 0;
    const int k_from = k_start + batch * k_batch + head * k_head;
    const int v_from = v_start + batch * v_batch + head * v_head;
#endif
    for (int at = me; at < TILE_ROWS * DEPTH4; at += GROUP) {
        const int row = IMIN(first_row + at / DEPTH4, rows - 1);
#ifdef CACHED
        const int from = q_from + row * q_row;
        const int column = at % DEPTH4;
        const int image = batch;
        const int place = before + row;
INCLUDE turned_row
        value *= WIDE_SPLAT(scale);
#else
        const int from = q_from + PLACED(row) * q_row;
        WIDE4 value = TO_WIDE4(LOAD_q(from + at % DEPTH4)) * WIDE_SPLAT(scale);
        DIVIDED(value, LOAD_q, from, factor_of_head);
#endif
        tile_q[at % DEPTH4 * PITCH_Q + at / DEPTH4] = value;
    }
#ifdef BIASED
// Scores of keys that are there may be as small as those of others.
#define ONLY_THERE(weights, there) \
        if ((there) < 1) weights.x = 0.0f; \
        if ((there) < 2) weights.y = 0.0f; \
        if ((there) < 3) weights.z = 0.0f; \
        if ((there) < 4) weights.w = 0.0f
    const int bias_row = (keys + 3) / 4;
    const int bias_from = (GROUP_ID(2) % bias_batches * heads + head) * rows * bias_row;
#endif
    WIDE4 sums[SUMS];
    float most[EACH];
    float whole[EACH];
    UNROLL for (int i = 0; i < SUMS; ++i) sums[i] = WIDE_SPLAT(0.0f);
    UNROLL for (int r = 0; r < EACH; ++r) most[r] = -3.4028234e38f;
    UNROLL for (int r = 0; r < EACH; ++r) whole[r] = 0.0f;
    for (int first_key = begin; first_key < keys; first_key += KEYS) {
        for (int at = me; at < KEYS * DEPTH4; at += GROUP) {
            const int key = at / DEPTH4;
            const int from = k_from + PLACED(IMIN(first_key + key, keys - 1)) * k_row;
            WIDE4 value = TO_WIDE4(LOAD_k(from + at % DEPTH4));
            DIVIDED(value, LOAD_k, from, 1.0f);
            tile[at % DEPTH4 * (KEYS + 1) + key % 4 * (KEYS / 4) + key / 4] = value;
        }
        BARRIER;
        const int left_keys = keys - first_key;
        WIDE4 score[SCORES];
        UNROLL for (int h = 0; h < HALVES; ++h) {
            UNROLL for (int r = 0; r < EACH; ++r) score[h * EACH + r] = WIDE_SPLAT(0.0f);
            if (h == 0 || left_keys > 32) {
                for (int first = 0; first < DEPTH4; first += STEPS) {
                    UNROLL for (int step = 0; step < STEPS; ++step) {
                        const int d = first + step;
                        const WIDE4 k0 = tile[d * (KEYS + 1) + h * 8 + tx];
                        const WIDE4 k1 = tile[d * (KEYS + 1) + 1 * (KEYS / 4) + h * 8 + tx];
                        const WIDE4 k2 = tile[d * (KEYS + 1) + 2 * (KEYS / 4) + h * 8 + tx];
                        const WIDE4 k3 = tile[d * (KEYS + 1) + 3 * (KEYS / 4) + h * 8 + tx];
                        UNROLL for (int r = 0; r < EACH; ++r) {
                            const WIDE4 left = tile_q[d * PITCH_Q + r * GY + ty];
                            WIDE4 sum = score[h * EACH + r];
                            sum = MAD(WIDE_SPLAT(left.x), WIDE_VEC4(k0.x, k1.x, k2.x, k3.x), sum);
                            sum = MAD(WIDE_SPLAT(left.y), WIDE_VEC4(k0.y, k1.y, k2.y, k3.y), sum);
                            sum = MAD(WIDE_SPLAT(left.z), WIDE_VEC4(k0.z, k1.z, k2.z, k3.z), sum);
                            score[h * EACH + r] = MAD(WIDE_SPLAT(left.w), WIDE_VEC4(k0.w, k1.w, k2.w, k3.w), sum);
                        }
                    }
                }
            }
#ifdef BIASED
            UNROLL for (int r = 0; r < EACH; ++r) {
                const int row = IMIN(first_row + r * GY + ty, rows - 1);
                const int key4 = IMIN(first_key / 4 + h * 8 + tx, bias_row - 1);
                score[h * EACH + r] += TO_WIDE4(LOAD_bias(bias_from + row * bias_row + key4));
            }
#endif
            UNROLL for (int r = 0; r < EACH; ++r) {
#ifdef CACHED
                const int own = OWN(first_row + r * GY + ty);
                const int there = own + 1 - first_key - h * 32 - 4 * tx;
                const int gone = LEAST(own) - first_key - h * 32 - 4 * tx;
#if CAPPED
                const WIDE4 grown = EXP(WIDE_SPLAT(2.0f / softcap) * score[h * EACH + r]);
                score[h * EACH + r] = WIDE_SPLAT(softcap) - WIDE_SPLAT(2.0f * softcap) / (grown + WIDE_SPLAT(1.0f));
#endif
                if (gone > 0) score[h * EACH + r].x = -3.4028234e38f;
                if (gone > 1) score[h * EACH + r].y = -3.4028234e38f;
                if (gone > 2) score[h * EACH + r].z = -3.4028234e38f;
                if (gone > 3) score[h * EACH + r].w = -3.4028234e38f;
#else
                const int there = left_keys - h * 32 - 4 * tx;
#endif
                if (there < 1) score[h * EACH + r].x = -3.4028234e38f;
                if (there < 2) score[h * EACH + r].y = -3.4028234e38f;
                if (there < 3) score[h * EACH + r].z = -3.4028234e38f;
                if (there < 4) score[h * EACH + r].w = -3.4028234e38f;
            }
        }
        UNROLL for (int r = 0; r < EACH; ++r) {
            WIDE4 top = score[r];
#if HALVES > 1
            top = MAX(top, score[EACH + r]);
#endif
            meeting[(r * GY + ty) * 8 + tx] = MAX(MAX(top.x, top.y), MAX(top.z, top.w));
        }
        BARRIER;
        UNROLL for (int r = 0; r < EACH; ++r) {
            float now = most[r];
            for (int i = 0; i < 8; ++i) now = MAX(now, meeting[(r * GY + ty) * 8 + i]);
            const float factor = EXP(most[r] - now);
            most[r] = now;
            WIDE4 all = WIDE_SPLAT(0.0f);
            UNROLL for (int h = 0; h < HALVES; ++h) {
                WIDE4 part = EXP(score[h * EACH + r] - WIDE_SPLAT(now));
#ifdef BIASED
                ONLY_THERE(part, left_keys - h * 32 - 4 * tx);
#endif
                weight[(r * GY + ty) * (KEYS / 4 + 1) + h * 8 + tx] = part;
                all += part;
            }
            whole[r] = whole[r] * factor + (all.x + all.y + all.z + all.w);
            UNROLL for (int j = 0; j < OUT; ++j) sums[r * OUT + j] *= WIDE_SPLAT(factor);
        }
        for (int at = me; at < KEYS * COLUMNS4; at += GROUP) {
            const int key = IMIN(first_key + at / COLUMNS4, keys - 1);
            tile[at] = TO_WIDE4(LOAD_v(v_from + PLACED(key) * v_row + at % COLUMNS4));
        }
        BARRIER;
        const int fours = IMIN(KEYS / 4, (left_keys + 3) / 4);
        for (int key4 = 0; key4 < fours; ++key4) {
            UNROLL for (int j = 0; j < OUT; ++j) {
                const int column = IMIN(tx + 8 * j, COLUMNS4 - 1);
                const WIDE4 v0 = tile[(4 * key4 + 0) * COLUMNS4 + column];
                const WIDE4 v1 = tile[(4 * key4 + 1) * COLUMNS4 + column];
                const WIDE4 v2 = tile[(4 * key4 + 2) * COLUMNS4 + column];
                const WIDE4 v3 = tile[(4 * key4 + 3) * COLUMNS4 + column];
                UNROLL for (int r = 0; r < EACH; ++r) {
                    const WIDE4 p = weight[(r * GY + ty) * (KEYS / 4 + 1) + key4];
                    WIDE4 sum = sums[r * OUT + j];
                    sum = MAD(WIDE_SPLAT(p.x), v0, sum);
                    sum = MAD(WIDE_SPLAT(p.y), v1, sum);
                    sum = MAD(WIDE_SPLAT(p.z), v2, sum);
                    sums[r * OUT + j] = MAD(WIDE_SPLAT(p.w), v3, sum);
                }
            }
        }
        BARRIER;
    }
    UNROLL for (int r = 0; r < EACH; ++r) meeting[(r * GY + ty) * 8 + tx] = whole[r];
    BARRIER;
    const int to = dst_start + batch * dst_batch + head * dst_head;
    UNROLL for (int r = 0; r < EACH; ++r) {
        const int row = first_row + r * GY + ty;
        float all = 0.0f;
        for (int i = 0; i < 8; ++i) all += meeting[(r * GY + ty) * 8 + i];
        UNROLL for (int j = 0; j < OUT; ++j) {
            const int column = tx + 8 * j;
            if (row < rows && column < COLUMNS4) STORE_dst(to + PLACED(row) * dst_row + column, sums[r * OUT + j] / WIDE_SPLAT(all));
        }
    }
}
