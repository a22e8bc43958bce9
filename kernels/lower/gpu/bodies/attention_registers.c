// A subgroup has HIGH x 16 rows of q and one head, all in registers; there are DOWN of them a work-group, and PARTS share
// out the keys of each, 32 a turn, whose values are read before its scores are needed. No operand passes through local memory: which work-item holds what of a matrix is known,
// so that scores become the left operand of the second product where they are. Of the depth, and of the result's columns,
// a work-item takes eight that lie side by side, which only names them differently. Parts meet in local memory.
{
    const int me = LOCAL_ID(0);
    const int line = me % 32 / 4;
    const int quarter = me % 4;
    const int part = me / 32 % PARTS;
    const int down = me / 32 / PARTS;
    const int first_row = (GROUP_ID(0) * DOWN + down) * (16 * HIGH);
    const int head = GROUP_ID(1);
    const int batch = GROUP_ID(2);
    const int q_from = (q_start + batch * q_batch + head * q_head) / 2 + quarter;
    const int k_from = (k_start + batch * k_batch + head * k_head) / 2 + quarter;
    const int v_from = (v_start + batch * v_batch + head * v_head) / 2 + line;
    const float factor2 = scale * 1.44269504f;
    RAW8 above[LEFTS];
    RAW8 below[LEFTS];
    UNROLL for (int m = 0; m < HIGH; ++m) {
        const int row = first_row + m * 16 + line;
        UNROLL for (int d = 0; d < DEPTH32; ++d) {
            above[m * DEPTH32 + d] = LOAD_RAW8_q(q_from + IMIN(row, rows - 1) * (q_row / 2) + 4 * d);
            below[m * DEPTH32 + d] = LOAD_RAW8_q(q_from + IMIN(row + 8, rows - 1) * (q_row / 2) + 4 * d);
        }
    }
    WIDE4 sums[SUMS];
    UNROLL for (int i = 0; i < SUMS; ++i) sums[i] = WIDE_SPLAT(0.0f);
    float most[ROWS];
    float whole[ROWS];
    UNROLL for (int r = 0; r < ROWS; ++r) most[r] = -3.4028234e38f;
    UNROLL for (int r = 0; r < ROWS; ++r) whole[r] = 0.0f;
#if KEYS_AHEAD
    RAW8 next_k[KEYS8];
    UNROLL for (int j = 0; j < 4; ++j) {
        UNROLL for (int d = 0; d < DEPTH32; ++d) {
            next_k[j * DEPTH32 + d] = LOAD_RAW8_k(k_from + IMIN(32 * part + 8 * j + line, keys - 1) * (k_row / 2) + 4 * d);
        }
    }
#endif
    for (int turn = 0; turn < keys; turn += 32 * PARTS) {
        const int first_key = turn + 32 * part;
        const int left_keys = keys - first_key;
        WIDE4 score[SCORES];
        UNROLL for (int i = 0; i < SCORES; ++i) score[i] = WIDE_SPLAT(0.0f);
        UNROLL for (int j = 0; j < 4; ++j) {
            UNROLL for (int d = 0; d < DEPTH32; ++d) {
#if KEYS_AHEAD
                const RAW8 k8 = next_k[j * DEPTH32 + d];
#else
                const RAW8 k8 = LOAD_RAW8_k(k_from + IMIN(first_key + 8 * j + line, keys - 1) * (k_row / 2) + 4 * d);
#endif
                UNROLL for (int m = 0; m < HIGH; ++m) {
                    const RAW8 a8 = above[m * DEPTH32 + d];
                    const RAW8 b8 = below[m * DEPTH32 + d];
                    MULTIPLY_HALF(score[m * 4 + j], RAW8_OF(a8.x, b8.x, a8.y, b8.y), RAW4_OF(k8.x, k8.y));
                    MULTIPLY_HALF(score[m * 4 + j], RAW8_OF(a8.z, b8.z, a8.w, b8.w), RAW4_OF(k8.z, k8.w));
                }
            }
        }
        RAW8 values[8];
        UNROLL for (int u = 0; u < 2; ++u) {
            const int key = first_key + 16 * u + 2 * quarter;
            values[4 * u] = LOAD_RAW8_v(v_from + IMIN(key, keys - 1) * (v_row / 2));
            values[4 * u + 1] = LOAD_RAW8_v(v_from + IMIN(key + 1, keys - 1) * (v_row / 2));
            values[4 * u + 2] = LOAD_RAW8_v(v_from + IMIN(key + 8, keys - 1) * (v_row / 2));
            values[4 * u + 3] = LOAD_RAW8_v(v_from + IMIN(key + 9, keys - 1) * (v_row / 2));
        }
#if KEYS_AHEAD
        UNROLL for (int j = 0; j < 4; ++j) {
            UNROLL for (int d = 0; d < DEPTH32; ++d) {
                const int key = IMIN(first_key + 32 * PARTS + 8 * j + line, keys - 1);
                next_k[j * DEPTH32 + d] = LOAD_RAW8_k(k_from + key * (k_row / 2) + 4 * d);
            }
        }
#endif
        UNROLL for (int m = 0; m < HIGH; ++m) {
            float up = most[2 * m];
            float low = most[2 * m + 1];
            UNROLL for (int j = 0; j < 4; ++j) {
                score[m * 4 + j] *= WIDE_SPLAT(factor2);
                if (left_keys < 32) {
                    const int there = left_keys - 8 * j - 2 * quarter;
                    if (there < 1) score[m * 4 + j].xz = -3.4028234e38f;
                    if (there < 2) score[m * 4 + j].yw = -3.4028234e38f;
                }
                up = MAX(up, MAX(score[m * 4 + j].x, score[m * 4 + j].y));
                low = MAX(low, MAX(score[m * 4 + j].z, score[m * 4 + j].w));
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
            const WIDE4 factors = WIDE_VEC4(up_factor, up_factor, low_factor, low_factor);
            UNROLL for (int c = 0; c < 8; ++c) sums[m * 8 + c] *= factors;
            UNROLL for (int j = 0; j < 4; ++j) {
                const WIDE4 of = score[m * 4 + j];
                const WIDE4 e = WIDE_VEC4(EXP2(of.x - up), EXP2(of.y - up), EXP2(of.z - low), EXP2(of.w - low));
                whole[2 * m] += e.x + e.y;
                whole[2 * m + 1] += e.z + e.w;
                score[m * 4 + j] = e;
            }
        }
        UNROLL for (int u = 0; u < 2; ++u) {
            const RAW8 v0 = values[4 * u];
            const RAW8 v1 = values[4 * u + 1];
            const RAW8 v8 = values[4 * u + 2];
            const RAW8 v9 = values[4 * u + 3];
            UNROLL for (int m = 0; m < HIGH; ++m) {
                const WIDE4 one = score[m * 4 + 2 * u];
                const WIDE4 two = score[m * 4 + 2 * u + 1];
                const RAW8 p = RAW8_OF(
                    TWO_HALVES(one.x, one.y), TWO_HALVES(one.z, one.w), TWO_HALVES(two.x, two.y), TWO_HALVES(two.z, two.w));
                MULTIPLY_HALF(sums[m * 8 + 0], p, RAW4_OF(LOW_HALVES(v0.x, v1.x), LOW_HALVES(v8.x, v9.x)));
                MULTIPLY_HALF(sums[m * 8 + 1], p, RAW4_OF(HIGH_HALVES(v0.x, v1.x), HIGH_HALVES(v8.x, v9.x)));
                MULTIPLY_HALF(sums[m * 8 + 2], p, RAW4_OF(LOW_HALVES(v0.y, v1.y), LOW_HALVES(v8.y, v9.y)));
                MULTIPLY_HALF(sums[m * 8 + 3], p, RAW4_OF(HIGH_HALVES(v0.y, v1.y), HIGH_HALVES(v8.y, v9.y)));
                MULTIPLY_HALF(sums[m * 8 + 4], p, RAW4_OF(LOW_HALVES(v0.z, v1.z), LOW_HALVES(v8.z, v9.z)));
                MULTIPLY_HALF(sums[m * 8 + 5], p, RAW4_OF(HIGH_HALVES(v0.z, v1.z), HIGH_HALVES(v8.z, v9.z)));
                MULTIPLY_HALF(sums[m * 8 + 6], p, RAW4_OF(LOW_HALVES(v0.w, v1.w), LOW_HALVES(v8.w, v9.w)));
                MULTIPLY_HALF(sums[m * 8 + 7], p, RAW4_OF(HIGH_HALVES(v0.w, v1.w), HIGH_HALVES(v8.w, v9.w)));
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
    const int to = dst_start + batch * dst_batch + head * dst_head;
#if PARTS == 1
    UNROLL for (int m = 0; m < HIGH; ++m) {
        const int row = first_row + m * 16 + line;
        const int at = to + row * dst_row + 4 * quarter;
        const WIDE4 up = WIDE_SPLAT(1.0f / whole[2 * m]);
        const WIDE4 low = WIDE_SPLAT(1.0f / whole[2 * m + 1]);
        UNROLL for (int i = 0; i < 2; ++i) {
            const WIDE4 s0 = sums[m * 8 + 4 * i];
            const WIDE4 s1 = sums[m * 8 + 4 * i + 1];
            const WIDE4 s2 = sums[m * 8 + 4 * i + 2];
            const WIDE4 s3 = sums[m * 8 + 4 * i + 3];
            if (row < rows) {
                STORE_dst(at + i, WIDE_VEC4(s0.x, s1.x, s2.x, s3.x) * up);
                STORE_dst(at + 2 + i, WIDE_VEC4(s0.y, s1.y, s2.y, s3.y) * up);
            }
            if (row + 8 < rows) {
                STORE_dst(at + 8 * dst_row + i, WIDE_VEC4(s0.z, s1.z, s2.z, s3.z) * low);
                STORE_dst(at + 8 * dst_row + 2 + i, WIDE_VEC4(s0.w, s1.w, s2.w, s3.w) * low);
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
        UNROLL for (int i = 0; i < 2; ++i) {
            const WIDE4 s0 = sums[m * 8 + 4 * i];
            const WIDE4 s1 = sums[m * 8 + 4 * i + 1];
            const WIDE4 s2 = sums[m * 8 + 4 * i + 2];
            const WIDE4 s3 = sums[m * 8 + 4 * i + 3];
            parts[row * 17 + 4 * quarter + i] = WIDE_VEC4(s0.x, s1.x, s2.x, s3.x);
            parts[row * 17 + 4 * quarter + 2 + i] = WIDE_VEC4(s0.y, s1.y, s2.y, s3.y);
            parts[(row + 8) * 17 + 4 * quarter + i] = WIDE_VEC4(s0.z, s1.z, s2.z, s3.z);
            parts[(row + 8) * 17 + 4 * quarter + 2 + i] = WIDE_VEC4(s0.w, s1.w, s2.w, s3.w);
        }
    }
    BARRIER;
    for (int at = me % (32 * PARTS); at < 16 * HIGH * 16; at += 32 * PARTS) {
        const int row = at / 16;
        const int place = down * PARTS * (16 * HIGH) + row;
        float top = -3.4028234e38f;
        UNROLL for (int p = 0; p < PARTS; ++p) top = MAX(top, extents[2 * (place + p * (16 * HIGH))]);
        float all = 0.0f;
        WIDE4 sum = WIDE_SPLAT(0.0f);
        UNROLL for (int p = 0; p < PARTS; ++p) {
            const float share = EXP2(extents[2 * (place + p * (16 * HIGH))] - top);
            all += share * extents[2 * (place + p * (16 * HIGH)) + 1];
            sum += WIDE_SPLAT(share) * parts[(place + p * (16 * HIGH)) * 17 + at % 16];
        }
        if (first_row + row < rows) STORE_dst(to + (first_row + row) * dst_row + at % 16, sum / WIDE_SPLAT(all));
    }
#endif
}
