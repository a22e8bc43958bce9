"""Matrices of 16 x 16 of which each of 32 work-items has eight elements: what a device does, by ordinary instructions.

Operands are places in local memory, read when they are multiplied. Cheaper to compile and to run than matrices that
each work-item has whole (`test_matrix_units.py`), for kernels that keep several of them.
"""

from __future__ import annotations

_SAME = """\
#define MATRIX_LEFT Place
#define MATRIX_RIGHT Place
#define LOAD_LEFT(m, array, from, pitch) m = PLACE_OF(array, from, pitch, 0)
#define LOAD_ROWS(m, array, from, pitch) m = PLACE_OF(array, from, pitch, 0)
#define LOAD_COLUMNS(m, array, from, pitch) m = PLACE_OF(array, from, pitch, 1)
#define MULTIPLY_ADD(a, b, sum) multiply_add(a, b, sum, LANE)
#define SUBGROUP (LOCAL_ID(0) / WIDTH)
#define LANE (LOCAL_ID(0) % WIDTH)
#define SUBGROUP_BARRIER BARRIER
"""
IN_OPENCL = (
    """\
typedef struct { __local const uint4* from; int pitch; int turned; __global const uint* direct; } Place;
Place place_of(__local const uint4* from, int pitch, int turned) { Place p = {from, pitch, turned, 0}; return p; }
#define PLACE_OF(array, at, pitch, turned) place_of((array) + (at), pitch, turned)
float half_at(Place p, int row, int column) {
    return vload_half(column, (__local const half*)(p.from + row * p.pitch));
}
typedef struct { float at[8]; } Sum;
Sum no_sum(void) { Sum sum; for (int e = 0; e < 8; ++e) sum.at[e] = 0.0f; return sum; }
Sum multiply_add(Place a, Place b, Sum sum, int lane) {
    for (int e = 0; e < 8; ++e)
        for (int k = 0; k < 16; ++k) {
            const int column = lane % 2 * 8 + e;
            const int place = (column % 8 * 4 + k % 8 / 2) * 8 + column / 8 * 4 + k / 8 * 2 + k % 2;
            const float right = b.direct ? vload_half(place, (__global const half*)b.direct)
                : b.turned ? half_at(b, column, k) : half_at(b, k, column);
            sum.at[e] += half_at(a, lane / 2, k) * right;
        }
    return sum;
}
#define NEAR __global const uint*
#define LOAD_NEAR(near, at) near = (__global const uint*)&RIGHT_AT(at)
#define FRAGMENT(m, near) m.direct = near
#define MATRIX_SUM Sum
#define NO_SUM no_sum()
#define STORE_MATRIX(m, array, from, pitch) \\
    for (int e = 0; e < 8; ++e) \\
        ((__local float*)((array) + (from) + LANE / 2 * (pitch)))[LANE % 2 * 8 + e] = m.at[e]
#define FROM_BITS(v) as_float4(v)
#define TO_BITS(v) as_uint4(v)
#define RAW8 uint4
#define RAW8_ZERO ((uint4)(0))
"""
    + _SAME
)
IN_VULKAN = (
    """\
struct Place { int from; int pitch; int turned; };
#define PLACE_OF(array, at, pitch, turned) Place(at, pitch, turned)
struct Sum { float at[8]; };
Sum no_sum() { Sum sum; for (int e = 0; e < 8; ++e) sum.at[e] = 0.0f; return sum; }
#define MATRIX_SUM Sum
#define NO_SUM no_sum()
#define HALF_OF(p, row, column) \\
    unpackHalf2x16(tile[(p).from + (row) * (p).pitch + (column) / 8][(column) % 8 / 2])[(column) % 2]
#define NEAR int
#define LOAD_NEAR(near, at) near = (at)
#define FRAGMENT(m, near) m = Place(near, 0, 2)
#define RIGHT_HALF(p, k, n) \\
    unpackHalf2x16(RIGHT_AT((p).from + (n) % 8 * 4 + (k) % 8 / 2)[(n) / 8 * 2 + (k) / 8])[(k) % 2]
#define RIGHT_OF(p, k, n) (p.turned == 0 ? HALF_OF(p, k, n) : HALF_OF(p, n, k))
#define ELEMENT(m, e) RIGHT_OF(m, LANE % 4 * 2 + (e) / 2 % 2 * 8 + (e) % 2, LANE / 4 + (e) / 4 * 8)
#define STORE_MATRIX(m, array, from, pitch) \\
    for (int e = 0; e < 8; ++e) \\
        array[(from) + LANE / 2 * (pitch) + LANE % 2 * 2 + e / 4][e % 4] = floatBitsToUint(m.at[e])
#define FROM_BITS(v) uintBitsToFloat(v)
#define TO_BITS(v) floatBitsToUint(v)
#define RAW8 uvec4
#define RAW8_ZERO uvec4(0)
"""
    + _SAME.replace("#define MULTIPLY_ADD(a, b, sum) multiply_add(a, b, sum, LANE)\n", "")
    + """\
#define MULTIPLY_ADD(a, b, sum) sum; \\
    for (int e = 0; e < 8; ++e) \\
        for (int k = 0; k < 16; ++k) \\
            sum.at[e] += HALF_OF(a, LANE / 2, k) \\
                * RIGHT_OF(b, k, LANE % 2 * 8 + e)
"""
)

RIGHTS_IN_VULKAN = IN_VULKAN.replace(
    "* RIGHT_OF(b, k, LANE % 2 * 8 + e)",
    "* (b.turned == 2 ? RIGHT_HALF(b, k, LANE % 2 * 8 + e) : RIGHT_OF(b, k, LANE % 2 * 8 + e))",
)
"""The same where right operands lie as `fragments` of kernels/catalog/unit_fragments.py."""

FRAGMENTS_IN_OPENCL = """\
#define RAW8 uint4
#define RAW8_ZERO ((uint4)(0))
float half_of_word(uint word, int place) {
    ushort bits = (ushort)(word >> 16 * place);
    return vload_half(0, (const half*)&bits);
}
float4 fragment_product(const uint4* left, const uint2* right, float4 sum, int lane) {
    float sums[4] = {sum.x, sum.y, sum.z, sum.w};
    for (int e = 0; e < 4; ++e) {
        const int row = lane / 4, column = lane % 4 * 2 + e % 2;
        for (int k = 0; k < 16; ++k) {
            const uint4 a = left[row * 4 + k % 8 / 2];
            const uint2 b = right[column * 4 + k % 8 / 2];
            const uint word = k < 8 ? (e < 2 ? a.x : a.y) : (e < 2 ? a.z : a.w);
            sums[e] += half_of_word(word, k % 2) * half_of_word(k < 8 ? b.x : b.y, k % 2);
        }
    }
    return (float4)(sums[0], sums[1], sums[2], sums[3]);
}
#define MULTIPLY_HALF(sum, a, b) { \\
    lefts_of_all[LOCAL_ID(0)] = as_float4(a); \\
    rights_of_all[LOCAL_ID(0)] = as_float4((uint4)((b), (uint2)(0))); BARRIER; \\
    uint2 rights[32]; \\
    for (int i = 0; i < 32; ++i) rights[i] = as_uint4(rights_of_all[LOCAL_ID(0) / 32 * 32 + i]).xy; \\
    uint4 lefts[32]; \\
    for (int i = 0; i < 32; ++i) lefts[i] = as_uint4(lefts_of_all[LOCAL_ID(0) / 32 * 32 + i]); \\
    sum = fragment_product(lefts, rights, sum, LOCAL_ID(0) % 32); BARRIER; }
#define EXCHANGE(to, v, mask) { \\
    lefts_of_all[LOCAL_ID(0)].x = (v); BARRIER; to = lefts_of_all[LOCAL_ID(0) ^ (mask)].x; BARRIER; }
#define EXP2(a) exp2(a)
uint TWO_HALVES(float a, float b) {
    ushort bits[2];
    vstore_half(a, 0, (half*)&bits[0]);
    vstore_half(b, 0, (half*)&bits[1]);
    return (uint)bits[0] | (uint)bits[1] << 16;
}
"""
"""Matrices of which it is known who holds what, as PTX ISA defines `mma.m16n8k16`; work-items exchange by local memory,
through arrays `lefts_of_all` and `rights_of_all` of a vector each."""
