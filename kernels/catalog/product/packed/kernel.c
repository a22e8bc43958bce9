// Rows times packed weights, or MATRICES of them: each work-item has four outputs, of which it unpacks TURNS spans of the depth at
// once; spans are shared out over KY work-items. NORMED: the row is divided by the root of its mean square, and multiplied by
// `norm`. RAGGED: the last span has columns behind the depth.
{
    const int me = LOCAL_ID(0);
    const int ky = me / CX;
EACH_ROW
    const int row = GROUP_ID(1);
END_ROW
    const int at = IMIN(GROUP_ID(0) * CX + me % CX, columns4 - 1);
    const int quarter = at % 4;
    const int panel = at / 4 * ((depth + BLOCK - 1) / BLOCK) * BLOCK_VECTORS;
    const int spans = (depth + SPAN - 1) / SPAN;
EACH_ROW
    WIDE4 sums[SUMS];
    UNROLL for (int i = 0; i < SUMS; ++i) sums[i] = WIDE_SPLAT(0.0f);
#if NORMED
    WIDE4 squares = WIDE_SPLAT(0.0f);
#endif
END_ROW
    for (int base = 0; base < spans; base += TURNS * KY) {
        const int first = base + ky;
        INT4 codes[READS];
        INT4 fields[FIELD_READS];
        UNROLL for (int turn = 0; turn < TURNS; ++turn) {
            const int there = IMIN(first + turn * KY, spans - 1);
            const int from = CODES_AT(there);
            LOAD_FIELDS(LOAD_b, there, turn * FIELD_VECTORS)
            UNROLL for (int i = 0; i < SPAN_WORDS; ++i) codes[turn * SPAN_WORDS + i] = LOAD_b(from + i * 4);
#if MATRICES == 2
            LOAD_FIELDS(LOAD_twin, there, (TURNS + turn) * FIELD_VECTORS)
            UNROLL for (int i = 0; i < SPAN_WORDS; ++i) codes[(TURNS + turn) * SPAN_WORDS + i] = LOAD_twin(from + i * 4);
#endif
        }
        UNROLL for (int turn = 0; turn < TURNS; ++turn) {
            const int span = first + turn * KY;
            if (span < spans) {
EACH_ROW
                WIDE4 products[SUMS];
                UNROLL for (int m = 0; m < MATRICES; ++m) products[m] = WIDE_SPLAT(0.0f);
                WIDE4 values = WIDE_SPLAT(0.0f);
END_ROW
                UNROLL for (int k = 0; k < SPAN_VECTORS; ++k) {
                    const int k4 = span * SPAN_VECTORS + k;
EACH_ROW
#if RAGGED
                    const int last = (depth + 3) / 4 - 1;
                    WIDE4 left = k4 <= last ? TO_WIDE4(LOAD_a(a_start + row * a_stride + IMIN(k4, last))) : WIDE_SPLAT(0.0f);
                    TRIM(k4 == last, left)
#else
                    WIDE4 left = TO_WIDE4(LOAD_a(a_start + row * a_stride + k4));
#endif
#if NORMED
                    squares = MAD(left, left, squares);
                    left *= TO_WIDE4(LOAD_norm(IMIN(k4, (depth + 3) / 4 - 1)));
#endif
                    values += left;
                    UNROLL for (int m = 0; m < MATRICES; ++m) {
                        const int of = (m * TURNS + turn) * SPAN_WORDS;
                        products[m] = MAD(WIDE_SPLAT(left.x), CODE(of, k * 4), products[m]);
                        products[m] = MAD(WIDE_SPLAT(left.y), CODE(of, k * 4 + 1), products[m]);
                        products[m] = MAD(WIDE_SPLAT(left.z), CODE(of, k * 4 + 2), products[m]);
                        products[m] = MAD(WIDE_SPLAT(left.w), CODE(of, k * 4 + 3), products[m]);
                    }
END_ROW
                }
EACH_ROW
                const WIDE4 value = WIDE_SPLAT(values.x + values.y + values.z + values.w);
                UNROLL for (int m = 0; m < MATRICES; ++m) {
                    const WIDE4 scale = SCALE((m * TURNS + turn) * FIELD_VECTORS);
                    const WIDE4 zero = scale * ZERO_OF((m * TURNS + turn) * FIELD_VECTORS);
                    sums[m] = MAD(products[m], scale, sums[m]);
                    sums[m] = MAD(value, OFFSET((m * TURNS + turn) * FIELD_VECTORS) - zero, sums[m]);
                }
END_ROW
            }
        }
    }
EACH_ROW
    INCLUDE meet
END_ROW
}
