// What follows from `MATRICES`.
#define ROLLED [[dont_unroll]]
#define IN_REGISTERS (SIDES == 4 || SIDES == 6)
#define LEFT_NEAR(m, near) LEFT_OF(m, (near).x, (near).z, (near).y, (near).w)
#define RAW8_OF(a, b, c, d) uvec4((a), (b), (c), (d))
#define RAW8_PAIR(a, b) uvec4((a), (b))
#define RAW4_OF(v) uvec2(packHalf2x16((v).xy), packHalf2x16((v).zw))
#define LOW_HALVES(a, b) (((a) & 0xffffu) | (b) << 16)
#define HIGH_HALVES(a, b) ((a) >> 16 | ((b) & 0xffff0000u))
#define NOT_A_NUMBER uintBitsToFloat(0x7fc00000u)
#define SPREAD(line, n) ((line) / 8 * 8 + (line) % (n) * (8 / (n)) + (line) % 8 / (n))
#define PUT_HALVES(array, at, a, b) \
    array[at] = uvec4(packHalf2x16((a).xy), packHalf2x16((a).zw), packHalf2x16((b).xy), packHalf2x16((b).zw))
#if TURNED
#define LOAD_RIGHT(m, array, at, pitch) LOAD_COLUMNS(m, array, at, pitch)
#else
#define LOAD_RIGHT(m, array, at, pitch) LOAD_ROWS(m, array, at, pitch)
#endif
