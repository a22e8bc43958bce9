// softmax(q k) v of one token (kernels/ir/cache.py). A work-group has TOGETHER heads that share one of the cache, and of the places
// that are seen a split, PLACES a turn: LANES work-items share a key's row, then each has a vector of the values of every one of
// PARTS places. Splits are scaled by their own largest score; `attend_join` joins them (flash-decoding, Dao et al. 2023).
// APPENDS: the token's own key and value are put into the cache by the group that looks at them.
{
    const int me = LOCAL_ID(0);
    const int split = GROUP_ID(0);
    const int first_head = GROUP_ID(1) * TOGETHER;
    const int image = GROUP_ID(2);
    const int row = 0;
    const int rows = 1;
INCLUDE split_places
    const int begin = lowest + split * share;
    const int end = IMIN(begin + share, own + 1);
    const int queried = begin < end ? TOGETHER * DEPTH4 : 0;  // a split without places meets the barriers alone
    const int shared_head = first_head / (heads / kept);
    const int plane = (image * kept + shared_head) * capacity;
    const int lane = me % LANES;
    const int part = me / COLUMNS4;
#if APPENDS
    const int last = IMIN(end, place == own ? own : own + 1) - 1;  // nobody reads the row that is written meanwhile
#else
    const int last = end - 1;
#endif
    FLOAT4 keys[KEYS];
    FLOAT4 values[VALUES];
    UNROLL for (int j = 0; j < KEYS; ++j) keys[j] = SPLAT(0.0f);
    UNROLL for (int j = 0; j < VALUES; ++j) values[j] = SPLAT(0.0f);
    {  // on their way while the query is turned, and later ones while those before are added up
        const int first = begin;
        const int column = me % COLUMNS4;
INCLUDE token_reads
    }
#define ROW(at) LOAD_src(at)
#define SCALE(at) LOAD_norm(at)
    for (int i = me; i < queried; i += GROUP) {
        const int column = i % DEPTH4;
        const int from = src_start + image * src_batch + (first_head + i / DEPTH4) * src_head;
INCLUDE turned_row
        tile_q[i] = value * WIDE_SPLAT(scale);
    }
#if APPENDS
#undef ROW
#undef SCALE
#define ROW(at) LOAD_new_key(at)
#define SCALE(at) LOAD_new_norm(at)
    const int added = place == own && end > own ? own : -1;
    if (added >= 0) {
        const bool is_first = first_head % (heads / kept) == 0;
        for (int column = me; column < DEPTH4; column += GROUP) {
            const int from = key_start + image * key_batch + shared_head * key_head;
INCLUDE turned_row
            tile_k[column] = value;
            if (is_first) STORE_key_cache((plane + own) * DEPTH4 + column, value);
        }
        for (int column = me; column < COLUMNS4; column += GROUP) {
            const WIDE4 value = TO_WIDE4(LOAD_new_value(value_start + image * value_batch + shared_head * value_head + column));
            tile_v[column] = value;
            if (is_first) STORE_value_cache((plane + own) * COLUMNS4 + column, value);
        }
    }
#endif
    BARRIER;
    WIDE4 sums[TOGETHER];
    float whole[TOGETHER];
    float most[PAIRS];
    UNROLL for (int h = 0; h < TOGETHER; ++h) {
        sums[h] = WIDE_SPLAT(0.0f);
        whole[h] = 0.0f;
    }
    UNROLL for (int n = 0; n < PAIRS; ++n) most[n] = -3.4028234e38f;
    const int column = me % COLUMNS4;
    for (int turn = begin; turn < end; turn += PLACES) {
        const int there = IMIN(PLACES, end - turn);
#if APPENDS
        if (turn + me / LANES == added) {
            UNROLL for (int j = 0; j < KEYS; ++j) keys[j] = tile_k[IMIN(lane + j * LANES, DEPTH4 - 1)];
        }
        UNROLL for (int j = 0; j < VALUES; ++j) {
            if (turn + part + j * PARTS == added) values[j] = tile_v[column];
        }
#endif
        UNROLL for (int h = 0; h < TOGETHER; ++h) {
            WIDE4 dots = WIDE_SPLAT(0.0f);
            UNROLL for (int j = 0; j < KEYS; ++j) {
                if (lane + j * LANES < DEPTH4) dots = MAD(tile_q[h * DEPTH4 + lane + j * LANES], TO_WIDE4(keys[j]), dots);
            }
            meeting[h * GROUP + me] = dots.x + dots.y + dots.z + dots.w;
        }
        BARRIER;
        for (int i = me; i < TOGETHER * PLACES; i += GROUP) {
            float score = 0.0f;
            UNROLL for (int j = 0; j < LANES; ++j) score += meeting[i * LANES + j];
#if CAPPED
            score = softcap - 2.0f * softcap / (EXP(2.0f * score / softcap) + 1.0f);
#endif
            scores[i] = i % PLACES < there ? score : -3.4028234e38f;
        }
        BARRIER;
        UNROLL for (int n = 0; n < PAIRS; ++n) {
            const int i = me + n * GROUP;
            if (i < TOGETHER * PLACES) {
                float now = most[n];
                UNROLL for (int p = 0; p < PLACES; ++p) now = MAX(now, scores[i / PLACES * PLACES + p]);
                weight[i] = EXP(scores[i] - now);
                if (i % PLACES == 0) factors[i / PLACES] = EXP(most[n] - now);
                most[n] = now;
            }
        }
        BARRIER;
        UNROLL for (int h = 0; h < TOGETHER; ++h) {
            sums[h] *= WIDE_SPLAT(factors[h]);
            whole[h] *= factors[h];
        }
        UNROLL for (int j = 0; j < VALUES; ++j) {
            if (part < PARTS && part + j * PARTS < there) {
                const WIDE4 value = TO_WIDE4(values[j]);
                UNROLL for (int h = 0; h < TOGETHER; ++h) {
                    const float share_of = weight[h * PLACES + part + j * PARTS];
                    sums[h] = MAD(WIDE_SPLAT(share_of), value, sums[h]);
                    whole[h] += share_of;
                }
            }
        }
        const int first = turn + PLACES;
INCLUDE token_reads
    }
    UNROLL for (int set = 0; set < SETS; ++set) {
        BARRIER;
        UNROLL for (int j = 0; j < JOINED; ++j) {
            held[j * GROUP + me] = sums[set * JOINED + j];
            meeting[j * GROUP + me] = whole[set * JOINED + j];
            if (me == (set * JOINED + j) % LANES * PLACES) factors[set * JOINED + j] = most[(set * JOINED + j) / LANES];
        }
        BARRIER;
        for (int i = me; i < JOINED * COLUMNS4; i += GROUP) {
            const int from = i / COLUMNS4 * GROUP + i % COLUMNS4;
            const int h = set * JOINED + i / COLUMNS4;
            WIDE4 sum = held[from];
            float share_of = meeting[from];
            for (int p = 1; p < PARTS; ++p) {
                sum += held[from + p * COLUMNS4];
                share_of += meeting[from + p * COLUMNS4];
            }
            const int number = image * heads + first_head + h;
            if (queried > 0) {
#if SPLITS == 1
                STORE_dst(number * COLUMNS4 + i % COLUMNS4, sum / WIDE_SPLAT(share_of));
#else
                const int found = (number * SPLITS + split) * (COLUMNS4 + 1);
                STORE_dst(found + i % COLUMNS4, sum);
                if (i % COLUMNS4 == 0) STORE_dst(found + COLUMNS4, WIDE_VEC4(factors[h], share_of, 0.0f, 0.0f));
#endif
            }
        }
    }
}
