// ROWS rows times packed weights, four columns a work-item. Those of a group that have other rows of the same columns, DOWN of them,
// unpack a span of the depth together, in two sides of local memory that alternate; of one, each unpacks its own. RAGGED: the last
// span has columns behind the depth.
{
    const int me = LOCAL_ID(0);
    const int across = me % CX;
    const int down = me / CX;
    const int own = GROUP_ID(0) * CX + across;
    const int at = IMIN(own, columns4 - 1);
    const int first = (GROUP_ID(1) * DOWN + down) * ROWS;
    const int quarter = at % 4;
    const int panel = at / 4 * ((depth + BLOCK - 1) / BLOCK) * BLOCK_VECTORS;
    const int spans = (depth + SPAN - 1) / SPAN;
    WIDE4 sums[SUMS];
    int a_at[ROWS];
    UNROLL for (int r = 0; r < ROWS; ++r) {
        sums[r] = WIDE_SPLAT(0.0f);
        a_at[r] = a_start + IMIN(first + r, rows - 1) * a_stride;
    }
    CHUNK_SUMS
    IN_CHUNKS(span, spans, SPAN_VECTORS) {
        INT4 fields[FIELD_VECTORS];
        INT4 codes[SPAN_WORDS];
        LOAD_FIELDS(LOAD_b, span, 0)
        UNROLL for (int i = 0; i < SPAN_WORDS; ++i) codes[i] = LOAD_b(CODES_AT(span) + i * 4);
        const WIDE4 scale = SCALE(0);
        const WIDE4 offset = OFFSET(0) - scale * ZERO_OF(0);
#if DOWN > 1
        const int side = span % 2 * SPAN * CX + across;
        UNROLL for (int k = 0; k < SPAN; ++k) {
            if (k % DOWN == down) unpacked[side + k * CX] = TO_COMPUTED(MAD(CODE(0, k), scale, offset));
        }
        BARRIER;
#define UNPACKED_AT(k) unpacked[side + (k) * CX]
#else
#define UNPACKED_AT(k) TO_COMPUTED(MAD(CODE(0, k), scale, offset))
#endif
        UNROLL for (int k = 0; k < SPAN_VECTORS; ++k) {
            const int k4 = span * SPAN_VECTORS + k;
            const FLOAT4 b0 = UNPACKED_AT(k * 4);
            const FLOAT4 b1 = UNPACKED_AT(k * 4 + 1);
            const FLOAT4 b2 = UNPACKED_AT(k * 4 + 2);
            const FLOAT4 b3 = UNPACKED_AT(k * 4 + 3);
            UNROLL for (int r = 0; r < ROWS; ++r) {
#if RAGGED
                const int last = (depth + 3) / 4 - 1;
                FLOAT4 left = k4 <= last ? LOAD_a(a_at[r] + IMIN(k4, last)) : SPLAT(0.0f);
                if (4 * k4 + 4 > depth) {
                    if (depth % 4 < 2) left.y = ZERO;
                    if (depth % 4 < 3) left.z = ZERO;
                    left.w = ZERO;
                }
#else
                const FLOAT4 left = LOAD_a(a_at[r] + k4);
#endif
                FLOAT4 sum = MAD(SPLAT(left.x), b0, chunk[r]);
                sum = MAD(SPLAT(left.y), b1, sum);
                sum = MAD(SPLAT(left.z), b2, sum);
                chunk[r] = MAD(SPLAT(left.w), b3, sum);
            }
        }
        FOLD(SPAN_VECTORS)
    }
    FOLD_REST
    UNROLL for (int r = 0; r < ROWS; ++r) {
        if (first + r < rows && own < columns4) {
            WIDE4 sum = sums[r];
            if (has_bias != 0) sum += TO_WIDE4(LOAD_bias(own));
            STORE_dst(dst_start + (first + r) * dst_stride + own, ACTIVATE(sum));
        }
    }
}
