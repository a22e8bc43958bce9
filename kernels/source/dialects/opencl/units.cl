// What follows from `MATRICES`.
#define ROLLED
#define IN_REGISTERS 0
#define SPREAD(line, n) ((line) / 8 * 8 + (line) % (n) * (8 / (n)) + (line) % 8 / (n))
#define PUT_HALVES(array, at, a, b) \
    PUT_HALF4(a, 0, (array) + (at)); PUT_HALF4(b, 1, (array) + (at))
#define RAW8_OF(a, b, c, d) ((uint4)((a), (b), (c), (d)))
#define RAW8_PAIR(a, b) ((uint4)((a), (b)))
#define LOW_HALVES(a, b) (((a) & 0xffffu) | (b) << 16)
#define HIGH_HALVES(a, b) ((a) >> 16 | ((b) & 0xffff0000u))
#if TURNED
#define LOAD_RIGHT(m, array, at, pitch) LOAD_COLUMNS(m, array, at, pitch)
#else
#define LOAD_RIGHT(m, array, at, pitch) LOAD_ROWS(m, array, at, pitch)
#endif
