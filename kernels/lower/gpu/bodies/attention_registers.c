// A subgroup has HIGH x 16 rows of q and one head, all in registers; there are DOWN of them a work-group, and PARTS share
// out the keys of each, 32 a turn, whose values are read before its scores are needed. No operand passes through local memory: which work-item holds what of a matrix is known,
// so that scores become the left operand of the second product where they are. Of the depth, and of the result's columns,
// a work-item takes eight that lie side by side, which only names them differently. Parts meet in local memory.
// CACHED: keys and values are rows of a cache, as in `attention.c`; q is turned.
{
#define ONLY_KEYS(v) \
    if (there < 1) v.x = -3.4028234e38f; \
    if (there < 2) v.y = -3.4028234e38f; \
    if (there < 9) v.z = -3.4028234e38f; \
    if (there < 10) v.w = -3.4028234e38f
    const int me = LOCAL_ID(0);
    const int line = me % 32 / 4;
    const int quarter = me % 4;
    const int part = me / 32 % PARTS;
    const int down = me / 32 / PARTS;
    const int first_row = (GROUP_ID(0) * DOWN + down) * (16 * HIGH);
    const int head = GROUP_ID(1);
    const int batch = GROUP_ID(2);
    RAW8 above[LEFTS];
    RAW8 below[LEFTS];
#ifdef CACHED
INCLUDE rows_of_a_cache
// softcap * tanh(v / softcap), where v and the result are logarithms to base 2.
#define CAP(v) v = WIDE_SPLAT(softcap * 1.44269504f) - WIDE_SPLAT(softcap * 2.88539008f) / (EXP(WIDE_SPLAT(1.38629436f / softcap) * v) + WIDE_SPLAT(1.0f))
#define NOT_SEEN(v, own, from) { \
        const int there = (own) + 1 - (from); \
        const int gone = LEAST(own) - (from); \
        ONLY_KEYS(v); \
        if (gone > 0) v.x = -3.4028234e38f; \
        if (gone > 1) v.y = -3.4028234e38f; \
        if (gone > 8) v.z = -3.4028234e38f; \
        if (gone > 9) v.w = -3.4028234e38f; \
    }
    const int begin = LEAST(OWN(GROUP_ID(0) * DOWN * (16 * HIGH)));
    const int keys = OWN((GROUP_ID(0) + 1) * DOWN * (16 * HIGH) - 1) + 1;
    const int all_from = LEAST(OWN(first_row + 16 * HIGH - 1));
    const int all_to = OWN(first_row) + 1;
    const int k_row = DEPTH4;
    const int v_row = 16 * COLUMNS64;
    const int k_from = plane * (DEPTH4 / 2) + quarter;
    const int v_from = plane * (8 * COLUMNS64) + line;
    UNROLL for (int m = 0; m < HIGH; ++m) {
        UNROLL for (int low = 0; low < 2; ++low) {
            const int row = IMIN(first_row + m * 16 + line + 8 * low, rows - 1);
            const int from = q_start + batch * q_batch + head * q_head + row * q_row;
            const int image = batch;
            const int place = before + row;
#if NORMED
#define INVERSE_KNOWN
            WIDE4 squares = WIDE_SPLAT(0.0f);
            UNROLL for (int deep = 0; deep < DEPTH32; ++deep) {
                const WIDE4 early = TO_WIDE4(LOAD_q(from + 2 * (quarter + 4 * deep)));
                const WIDE4 late = TO_WIDE4(LOAD_q(from + 2 * (quarter + 4 * deep) + 1));
                squares = MAD(early, early, MAD(late, late, squares));
            }
            float all = squares.x + squares.y + squares.z + squares.w;
            float other;
            EXCHANGE(other, all, 1);
            all += other;
            EXCHANGE(other, all, 2);
            all += other;
            const WIDE4 inverse = WIDE_SPLAT(1.0f / SQRT(all / FLOAT(4 * DEPTH4) + epsilon));
#endif
            UNROLL for (int deep = 0; deep < DEPTH32; ++deep) {
                WIDE4 both[2];
                for (int late = 0; late < 2; ++late) {
                    const int column = 2 * (quarter + 4 * deep) + late;
INCLUDE turned_row
                    both[late] = value;
                }
                const RAW8 turned = RAW8_OF(
                    TWO_HALVES(both[0].x, both[0].y), TWO_HALVES(both[0].z, both[0].w),
                    TWO_HALVES(both[1].x, both[1].y), TWO_HALVES(both[1].z, both[1].w));
                if (low == 0) above[m * DEPTH32 + deep] = turned;
                else below[m * DEPTH32 + deep] = turned;
            }
        }
    }
#else
    const int begin = 0;
    const int q_from = (q_start + batch * q_batch + head * q_head) / 2 + quarter;
    const int k_from = (k_start + batch * k_batch + head * k_head) / 2 + quarter;
    const int v_from = (v_start + batch * v_batch + head * v_head) / 2 + line;
    UNROLL for (int m = 0; m < HIGH; ++m) {
        const int row = first_row + m * 16 + line;
        UNROLL for (int d = 0; d < DEPTH32; ++d) {
            above[m * DEPTH32 + d] = LOAD_RAW8_q(q_from + IMIN(row, rows - 1) * (q_row / 2) + 4 * d);
            below[m * DEPTH32 + d] = LOAD_RAW8_q(q_from + IMIN(row + 8, rows - 1) * (q_row / 2) + 4 * d);
        }
    }
#endif
    const float factor2 = scale * 1.44269504f;
    MATRIX_SUM sums[SUMS];
    UNROLL for (int i = 0; i < SUMS; ++i) sums[i] = NO_SUM;
    float most[ROWS];
    float whole[ROWS];
    UNROLL for (int r = 0; r < ROWS; ++r) most[r] = -3.4028234e38f;
    UNROLL for (int r = 0; r < ROWS; ++r) whole[r] = 0.0f;
#if KEYS_AHEAD
    RAW8 next_k[KEYS8];
    UNROLL for (int j = 0; j < 4; ++j) {
        UNROLL for (int d = 0; d < DEPTH32; ++d) {
            next_k[j * DEPTH32 + d] = LOAD_RAW8_k(k_from + IMIN(begin + 32 * part + 8 * j + line, keys - 1) * (k_row / 2) + 4 * d);
        }
    }
#endif
    for (int turn = begin; turn < keys; turn += 32 * PARTS) {
        const int first_key = turn + 32 * part;
        const int left_keys = keys - first_key;
        MATRIX_SUM score[SCORES];
        UNROLL for (int i = 0; i < SCORES; ++i) score[i] = NO_SUM;
        UNROLL for (int j = 0; j < 2; ++j) {
            UNROLL for (int d = 0; d < DEPTH32; ++d) {
#if KEYS_AHEAD
                const RAW8 k0 = next_k[2 * j * DEPTH32 + d];
                const RAW8 k8 = next_k[(2 * j + 1) * DEPTH32 + d];
#else
                const RAW8 k0 = LOAD_RAW8_k(k_from + IMIN(first_key + 16 * j + line, keys - 1) * (k_row / 2) + 4 * d);
                const RAW8 k8 = LOAD_RAW8_k(k_from + IMIN(first_key + 16 * j + 8 + line, keys - 1) * (k_row / 2) + 4 * d);
#endif
                MATRIX_RIGHT early;
                MATRIX_RIGHT late;
                FRAGMENT(early, RAW8_OF(k0.x, k0.y, k8.x, k8.y));
                FRAGMENT(late, RAW8_OF(k0.z, k0.w, k8.z, k8.w));
                UNROLL for (int m = 0; m < HIGH; ++m) {
                    const RAW8 a8 = above[m * DEPTH32 + d];
                    const RAW8 b8 = below[m * DEPTH32 + d];
                    MATRIX_LEFT left;
                    LEFT_OF(left, a8.x, b8.x, a8.y, b8.y);
                    score[m * 2 + j] = MULTIPLY_ADD(left, early, score[m * 2 + j]);
                    LEFT_OF(left, a8.z, b8.z, a8.w, b8.w);
                    score[m * 2 + j] = MULTIPLY_ADD(left, late, score[m * 2 + j]);
                }
            }
        }
        RAW8 values[VALUES];
        UNROLL for (int b = 0; b < COLUMNS64; ++b) {
            UNROLL for (int u = 0; u < 2; ++u) {
                const int key = first_key + 16 * u + 2 * quarter;
                const int block_from = v_from + 8 * b;
                values[8 * b + 4 * u] = LOAD_RAW8_v(block_from + IMIN(key, keys - 1) * (v_row / 2));
                values[8 * b + 4 * u + 1] = LOAD_RAW8_v(block_from + IMIN(key + 1, keys - 1) * (v_row / 2));
                values[8 * b + 4 * u + 2] = LOAD_RAW8_v(block_from + IMIN(key + 8, keys - 1) * (v_row / 2));
                values[8 * b + 4 * u + 3] = LOAD_RAW8_v(block_from + IMIN(key + 9, keys - 1) * (v_row / 2));
            }
        }
#if KEYS_AHEAD
        UNROLL for (int j = 0; j < 4; ++j) {
            UNROLL for (int d = 0; d < DEPTH32; ++d) {
                const int key = IMIN(first_key + 32 * PARTS + 8 * j + line, keys - 1);
                next_k[j * DEPTH32 + d] = LOAD_RAW8_k(k_from + key * (k_row / 2) + 4 * d);
            }
        }
#endif
        MATRIX_LEFT weights[SCORES];
        UNROLL for (int m = 0; m < HIGH; ++m) {
            float up = most[2 * m];
            float low = most[2 * m + 1];
            WIDE4 ups[2];
            WIDE4 lows[2];
            UNROLL for (int j = 0; j < 2; ++j) {
                ups[j] = SUM_UP(score[m * 2 + j]) * WIDE_SPLAT(factor2);
                lows[j] = SUM_LOW(score[m * 2 + j]) * WIDE_SPLAT(factor2);
#ifdef CACHED
#if CAPPED
                CAP(ups[j]);
                CAP(lows[j]);
#endif
                if (first_key < all_from || first_key + 32 > all_to) {
                    const int own = OWN(first_row + m * 16 + line);
                    const int own_low = OWN(first_row + m * 16 + line + 8);
                    NOT_SEEN(ups[j], own, first_key + 16 * j + 2 * quarter);
                    NOT_SEEN(lows[j], own_low, first_key + 16 * j + 2 * quarter);
                }
#else
                if (left_keys < 32) {
                    const int there = left_keys - 16 * j - 2 * quarter;
                    ONLY_KEYS(ups[j]);
                    ONLY_KEYS(lows[j]);
                }
#endif
                up = MAX(up, MAX(MAX(ups[j].x, ups[j].y), MAX(ups[j].z, ups[j].w)));
                low = MAX(low, MAX(MAX(lows[j].x, lows[j].y), MAX(lows[j].z, lows[j].w)));
            }
            float other;
            EXCHANGE(other, up, 1);
            up = MAX(up, other);
            EXCHANGE(other, up, 2);
            up = MAX(up, other);
            EXCHANGE(other, low, 1);
            low = MAX(low, other);
            EXCHANGE(other, low, 2);
            low = MAX(low, other);
            const float up_factor = EXP2(most[2 * m] - up);
            const float low_factor = EXP2(most[2 * m + 1] - low);
            most[2 * m] = up;
            most[2 * m + 1] = low;
            whole[2 * m] *= up_factor;
            whole[2 * m + 1] *= low_factor;
            UNROLL for (int c = 0; c < SUMS_OF_ROW; ++c) SCALE_SUM(sums[m * SUMS_OF_ROW + c], up_factor, low_factor);
            UNROLL for (int j = 0; j < 2; ++j) {
                const WIDE4 u = WIDE_VEC4(EXP2(ups[j].x - up), EXP2(ups[j].y - up), EXP2(ups[j].z - up), EXP2(ups[j].w - up));
                const WIDE4 l = WIDE_VEC4(EXP2(lows[j].x - low), EXP2(lows[j].y - low), EXP2(lows[j].z - low), EXP2(lows[j].w - low));
                whole[2 * m] += u.x + u.y + u.z + u.w;
                whole[2 * m + 1] += l.x + l.y + l.z + l.w;
                LEFT_OF(weights[m * 2 + j], TWO_HALVES(u.x, u.y), TWO_HALVES(l.x, l.y), TWO_HALVES(u.z, u.w), TWO_HALVES(l.z, l.w));
            }
        }
        UNROLL for (int b = 0; b < COLUMNS64; ++b) {
            UNROLL for (int j = 0; j < 2; ++j) {
                const RAW8 v0 = values[8 * b + 4 * j];
                const RAW8 v1 = values[8 * b + 4 * j + 1];
                const RAW8 v8 = values[8 * b + 4 * j + 2];
                const RAW8 v9 = values[8 * b + 4 * j + 3];
                MATRIX_RIGHT of[4];
                FRAGMENT(of[0], RAW8_OF(LOW_HALVES(v0.x, v1.x), LOW_HALVES(v8.x, v9.x), HIGH_HALVES(v0.x, v1.x), HIGH_HALVES(v8.x, v9.x)));
                FRAGMENT(of[1], RAW8_OF(LOW_HALVES(v0.y, v1.y), LOW_HALVES(v8.y, v9.y), HIGH_HALVES(v0.y, v1.y), HIGH_HALVES(v8.y, v9.y)));
                FRAGMENT(of[2], RAW8_OF(LOW_HALVES(v0.z, v1.z), LOW_HALVES(v8.z, v9.z), HIGH_HALVES(v0.z, v1.z), HIGH_HALVES(v8.z, v9.z)));
                FRAGMENT(of[3], RAW8_OF(LOW_HALVES(v0.w, v1.w), LOW_HALVES(v8.w, v9.w), HIGH_HALVES(v0.w, v1.w), HIGH_HALVES(v8.w, v9.w)));
                UNROLL for (int m = 0; m < HIGH; ++m) {
                    const int at = m * SUMS_OF_ROW + 4 * b;
                    UNROLL for (int c = 0; c < 4; ++c) sums[at + c] = MULTIPLY_ADD(weights[m * 2 + j], of[c], sums[at + c]);
                }
            }
        }
    }
    UNROLL for (int r = 0; r < ROWS; ++r) {
        float other;
        EXCHANGE(other, whole[r], 1);
        whole[r] += other;
        EXCHANGE(other, whole[r], 2);
        whole[r] += other;
    }
#ifdef ELEMENT
#define LOOK_HERE true
    INCLUDE units_known
    UNROLL for (int r = 0; r < ROWS; ++r) whole[r] += unlike;
#endif
    const int to = dst_start + batch * dst_batch + head * dst_head;
#if PARTS == 1
    UNROLL for (int m = 0; m < HIGH; ++m) {
        const int row = first_row + m * 16 + line;
        const int at = to + row * dst_row + 4 * quarter;
        const WIDE4 up = WIDE_SPLAT(1.0f / whole[2 * m]);
        const WIDE4 low = WIDE_SPLAT(1.0f / whole[2 * m + 1]);
        UNROLL for (int pair = 0; pair < PAIRS; ++pair) {
            const int i = at + pair / 2 * 16 + pair % 2;
            const WIDE4 u0 = SUM_UP(sums[m * SUMS_OF_ROW + 2 * pair]);
            const WIDE4 u1 = SUM_UP(sums[m * SUMS_OF_ROW + 2 * pair + 1]);
            const WIDE4 l0 = SUM_LOW(sums[m * SUMS_OF_ROW + 2 * pair]);
            const WIDE4 l1 = SUM_LOW(sums[m * SUMS_OF_ROW + 2 * pair + 1]);
            if (row < rows) {
                STORE_dst(i, WIDE_VEC4(u0.x, u0.z, u1.x, u1.z) * up);
                STORE_dst(i + 2, WIDE_VEC4(u0.y, u0.w, u1.y, u1.w) * up);
            }
            if (row + 8 < rows) {
                STORE_dst(i + 8 * dst_row, WIDE_VEC4(l0.x, l0.z, l1.x, l1.z) * low);
                STORE_dst(i + 8 * dst_row + 2, WIDE_VEC4(l0.y, l0.w, l1.y, l1.w) * low);
            }
        }
    }
#else
    UNROLL for (int m = 0; m < HIGH; ++m) {
        const int row = (down * PARTS + part) * (16 * HIGH) + m * 16 + line;
        if (quarter == 0) {
            extents[2 * row] = most[2 * m];
            extents[2 * row + 1] = whole[2 * m];
            extents[2 * row + 16] = most[2 * m + 1];
            extents[2 * row + 17] = whole[2 * m + 1];
        }
        UNROLL for (int pair = 0; pair < PAIRS; ++pair) {
            const int i = row * PART_PITCH + 4 * quarter + pair / 2 * 16 + pair % 2;
            const WIDE4 u0 = SUM_UP(sums[m * SUMS_OF_ROW + 2 * pair]);
            const WIDE4 u1 = SUM_UP(sums[m * SUMS_OF_ROW + 2 * pair + 1]);
            const WIDE4 l0 = SUM_LOW(sums[m * SUMS_OF_ROW + 2 * pair]);
            const WIDE4 l1 = SUM_LOW(sums[m * SUMS_OF_ROW + 2 * pair + 1]);
            parts[i] = WIDE_VEC4(u0.x, u0.z, u1.x, u1.z);
            parts[i + 2] = WIDE_VEC4(u0.y, u0.w, u1.y, u1.w);
            parts[i + 8 * PART_PITCH] = WIDE_VEC4(l0.x, l0.z, l1.x, l1.z);
            parts[i + 8 * PART_PITCH + 2] = WIDE_VEC4(l0.y, l0.w, l1.y, l1.w);
        }
    }
    BARRIER;
    for (int at = me % (32 * PARTS); at < 16 * HIGH * (PART_PITCH - 1); at += 32 * PARTS) {
        const int row = at / (PART_PITCH - 1);
        const int column = at % (PART_PITCH - 1);
        const int place = down * PARTS * (16 * HIGH) + row;
        float top = -3.4028234e38f;
        UNROLL for (int p = 0; p < PARTS; ++p) top = MAX(top, extents[2 * (place + p * (16 * HIGH))]);
        float all = 0.0f;
        WIDE4 sum = WIDE_SPLAT(0.0f);
        UNROLL for (int p = 0; p < PARTS; ++p) {
            const float share = EXP2(extents[2 * (place + p * (16 * HIGH))] - top);
            all += share * extents[2 * (place + p * (16 * HIGH)) + 1];
            sum += WIDE_SPLAT(share) * parts[(place + p * (16 * HIGH)) * PART_PITCH + column];
        }
        if (first_row + row < rows) STORE_dst(to + (first_row + row) * dst_row + column, sum / WIDE_SPLAT(all));
    }
#endif
}
