// Packed weights as `kernels/catalog/panels.py` writes them: sixteen outputs side by side, in vectors of four words. `panel` is
// the first vector of a panel, `quarter` says which four of its outputs are meant; a span is what words of codes hold together.
float of_half(int bits) {
    const int size = bits & 0x7fff;
    const float found = size < 1024 ? FLOAT(size) * 5.9604644775390625e-8f : FROM_BITS1((size << 13) + 0x38000000);
    return (bits & 0x8000) != 0 ? -found : found;
}
#define BLOCK_AT(span) (panel + (span) * SPAN / BLOCK * BLOCK_VECTORS)
#define CODES_AT(span) (BLOCK_AT(span) + CODES + (span) * SPAN % BLOCK / SPAN * SPAN_WORDS * 4 + quarter)
#define FACTOR_AT(span) (BLOCK_AT(span) + (span) * SPAN % BLOCK / GROUP_SIZE)
#define BITS_OF(word, c, each) ((word) >> ((c) * (each)) & ((1 << (each)) - 1))
#if BITS == 4 || BITS == 8
#define CODE(from, c) FROM_INT4(BITS_OF(codes[(from) + (c) / (32 / BITS)], (c) % (32 / BITS), BITS))
#define CODE1(at, c) BITS_OF(LOAD_src((at) + (c) / (32 / BITS) * 16), (c) % (32 / BITS), BITS)
#else
#define CODE(from, c) FROM_INT4(BITS_OF(codes[(from) + (c) / 8], (c) % 8, 4) | BITS_OF(codes[(from) + SPAN / 8], c, BITS - 4) << 4)
#define CODE1(at, c) (BITS_OF(LOAD_src((at) + (c) / 8 * 16), (c) % 8, 4) | BITS_OF(LOAD_src((at) + SPAN * 2), c, BITS - 4) << 4)
#endif
#if FIELDS % 2 == 1
#define SIZES_AT(span) (BLOCK_AT(span) + quarter)
#define SIZES(v) WIDE_VEC4(FROM_BITS1((v).x), FROM_BITS1((v).y), FROM_BITS1((v).z), FROM_BITS1((v).w))
#define SIZE1(at) FROM_BITS1(LOAD_src((at) + lane))
#else
#define SIZES_AT(span) (BLOCK_AT(span) + quarter / 2)
#define SIZES(v) (quarter % 2 == 0 ? HALVES((v).xy) : HALVES((v).zw))
#define HALVES(v) WIDE_VEC4(of_half((v).x), of_half((v).x >> 16), of_half((v).y), of_half((v).y >> 16))
#define SIZE1(at) of_half(LOAD_src((at) + lane / 2) >> lane % 2 * 16)
#endif
#define QUARTER(v) (quarter == 0 ? (v).x : quarter == 1 ? (v).y : quarter == 2 ? (v).z : (v).w)
#define BYTE_AT(at) (LOAD_src((at) + lane / 4) << (24 - lane % 4 * 8) >> 24)
// What a span has beside its codes: FIELD_VECTORS vectors from `at` on of `fields`, which are loaded before they are looked at.
#define LOAD_FIELDS(load, span, at) \
    fields[at] = load(SIZES_AT(span)); \
    LOAD_FACTOR(load, span, (at) + 1) \
    LOAD_OFFSET(load, span, (at) + OFFSET_FIELD) \
    LOAD_OFFSET_FACTOR(load, span, (at) + OFFSET_FIELD + 1) \
    LOAD_ZERO(load, span, (at) + FIELD_VECTORS - 1)
#define OFFSET_FIELD (1 + FIELDS / 2 % 2)
#if FIELDS / 2 % 2 == 1
#define LOAD_FACTOR(load, span, at) fields[at] = load(FACTOR_AT(span) + FACTORS);
#define SCALE(at) (SIZES(fields[at]) * FROM_INT4(BYTES(QUARTER(fields[(at) + 1]))))
#define SCALE1(block, group) (SIZE1(block) * FLOAT(BYTE_AT((block) + (FACTORS + group) * 4)))
#else
#define LOAD_FACTOR(load, span, at)
#define SCALE(at) SIZES(fields[at])
#define SCALE1(block, group) SIZE1(block)
#endif
#if FIELDS / 16 % 2 == 1
#define LOAD_ZERO(load, span, at) fields[at] = load(FACTOR_AT(span) + ZEROS);
#define ZERO_OF(at) FROM_INT4(BYTES(QUARTER(fields[(at) + FIELD_VECTORS - 1])) & 255)
#define ZERO1(block, group) (BYTE_AT((block) + (ZEROS + group) * 4) & 255)
#else
#define LOAD_ZERO(load, span, at)
#define ZERO_OF(at) WIDE_SPLAT(FLOAT(ZERO_CODE))
#define ZERO1(block, group) ZERO_CODE
#endif
#if FIELDS / 4 % 2 == 1
#define LOAD_OFFSET(load, span, at) fields[at] = load(SIZES_AT(span) + OFFSETS);
#else
#define LOAD_OFFSET(load, span, at)
#endif
#if FIELDS / 8 % 2 == 1
#define LOAD_OFFSET_FACTOR(load, span, at) fields[at] = load(FACTOR_AT(span) + OFFSET_FACTORS);
#define OFFSET(at) (SIZES(fields[(at) + OFFSET_FIELD]) * FROM_INT4(BYTES(QUARTER(fields[(at) + OFFSET_FIELD + 1]))))
#define OFFSET1(block, group) (SIZE1((block) + OFFSETS * 4) * FLOAT(BYTE_AT((block) + (OFFSET_FACTORS + group) * 4)))
#else
#define LOAD_OFFSET_FACTOR(load, span, at)
#if FIELDS / 4 % 2 == 1
#define OFFSET(at) SIZES(fields[(at) + OFFSET_FIELD])
#define OFFSET1(block, group) SIZE1((block) + OFFSETS * 4)
#else
#define OFFSET(at) WIDE_SPLAT(0.0f)
#define OFFSET1(block, group) 0.0f
#endif
#endif
#define UNPACKED1(block, codes, group, c) \
    (SCALE1(block, group) * FLOAT(CODE1(codes, c) - ZERO1(block, group)) + OFFSET1(block, group))
