// A subgroup two rows that lie side by side where rows are dealt out, i and i + 8 of 16. A work-item holds EACH vectors of both as
// they lie in memory; subgroups add up by handing each other what they have, and there is no barrier. UNCENTRED: no mean is taken off.
{
    INCLUDE dealt_place
#define ADD_UP(v) \
    EXCHANGE(other, v, 1); v += other; EXCHANGE(other, v, 2); v += other; EXCHANGE(other, v, 4); v += other; \
    EXCHANGE(other, v, 8); v += other; EXCHANGE(other, v, 16); v += other
    const int pair = GROUP_ID(0) * SUBGROUPS + SUBGROUP;
    const int row = pair / 8 * 16 + pair % 8;
    const int from_up = IMIN(row, rows - 1) * columns4;
    const int from_low = IMIN(row + 8, rows - 1) * columns4;
    const float count = FLOAT(4 * columns4);
    RAW4 ups[EACH];
    RAW4 lows[EACH];
    UNROLL for (int e = 0; e < EACH; ++e) {
        ups[e] = LOAD_RAW_src(from_up + IMIN(LANE + e * WIDTH, columns4 - 1));
        lows[e] = LOAD_RAW_src(from_low + IMIN(LANE + e * WIDTH, columns4 - 1));
    }
    float other;
    float up_all = 0.0f;
    float low_all = 0.0f;
    WIDE4 up = WIDE_SPLAT(0.0f);
    WIDE4 low = WIDE_SPLAT(0.0f);
#ifndef UNCENTRED
    UNROLL for (int e = 0; e < EACH; ++e) {
        if (LANE + e * WIDTH < columns4) {
            up += FROM_RAW(ups[e]);
            low += FROM_RAW(lows[e]);
        }
    }
    up_all = up.x + up.y + up.z + up.w;
    low_all = low.x + low.y + low.z + low.w;
    ADD_UP(up_all);
    ADD_UP(low_all);
    up = WIDE_SPLAT(0.0f);
    low = WIDE_SPLAT(0.0f);
#endif
    const WIDE4 up_mean = WIDE_SPLAT(up_all / count);
    const WIDE4 low_mean = WIDE_SPLAT(low_all / count);
    UNROLL for (int e = 0; e < EACH; ++e) {
        if (LANE + e * WIDTH < columns4) {
            const WIDE4 u = FROM_RAW(ups[e]) - up_mean;
            const WIDE4 l = FROM_RAW(lows[e]) - low_mean;
            up = MAD(u, u, up);
            low = MAD(l, l, low);
        }
    }
    up_all = up.x + up.y + up.z + up.w;
    low_all = low.x + low.y + low.z + low.w;
    ADD_UP(up_all);
    ADD_UP(low_all);
    const float up_root = SQRT(up_all / count + epsilon);
    const float low_root = SQRT(low_all / count + epsilon);
    const WIDE4 up_factor = WIDE_SPLAT(1.0f / (up_root < least ? least : up_root));
    const WIDE4 low_factor = WIDE_SPLAT(1.0f / (low_root < least ? least : low_root));
    UNROLL for (int e = 0; e < EACH; ++e) {
        const int column = LANE + e * WIDTH;
        if (row < rows && column < columns4) {
            const WIDE4 scales = TO_WIDE4(LOAD_scale(column));
            const WIDE4 shifts = TO_WIDE4(LOAD_shift(column));
            const WIDE4 u = MAD((FROM_RAW(ups[e]) - up_mean) * up_factor, scales, shifts);
            const WIDE4 l = MAD((FROM_RAW(lows[e]) - low_mean) * low_factor, scales, shifts);
            STORE_RAW8_dst(DEALT_AT(row, column) / 2, RAW8_PAIR(RAW4_OF(u), RAW4_OF(l)));
        }
    }
}
