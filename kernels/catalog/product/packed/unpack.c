// A span of four outputs' packed weights, as rows of the depth in vectors of four columns: of each matrix all spans, behind those
// of the one before.
{
    const int at = GLOBAL_ID(0);
    int span = GLOBAL_ID(1);
EACH_MATRIX
    if (span >= 0 && span * SPAN < depth && at < columns4) {
        const int quarter = at % 4;
        const int panel = at / 4 * ((depth + BLOCK - 1) / BLOCK) * BLOCK_VECTORS;
        INT4 fields[FIELD_VECTORS];
        INT4 codes[SPAN_WORDS];
        LOAD_FIELDS(LOAD_src, span, 0)
        UNROLL for (int i = 0; i < SPAN_WORDS; ++i) codes[i] = LOAD_src(CODES_AT(span) + i * 4);
        const WIDE4 scale = SCALE(0);
        const WIDE4 offset = OFFSET(0);
        const WIDE4 zero = ZERO_OF(0);
        UNROLL for (int k = 0; k < SPAN; ++k) {
            if (span * SPAN + k < depth) STORE_dst((span * SPAN + k) * columns4 + at, MAD(scale, CODE(0, k) - zero, offset));
        }
    }
    span -= (depth + SPAN - 1) / SPAN;
END_MATRIX
}
