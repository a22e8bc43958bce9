// Matrices of 16 x 16 by NVIDIA's own instructions (PTX ISA: `ldmatrix`, `mma.m16n8k16`), which its
// compiler of OpenCL C takes as inline assembly. Which work-item holds what is part of their definition.
#define MATRIX_LEFT uint4
#define MATRIX_RIGHT uint4
#define MATRIX_SUM float8
#define NO_SUM ((float8)(0.0f))
#define LOAD_LEFT(m, array, at, pitch) m = four_matrices((array) + (at) + LANE % 16 * (pitch) + LANE / 16)
#define LOAD_COLUMNS(m, array, at, pitch) \
    m = four_matrices((array) + (at) + (LANE % 8 + LANE / 16 * 8) * (pitch) + LANE / 8 % 2)
#define LOAD_ROWS(m, array, at, pitch) m = four_turned((array) + (at) + LANE % 16 * (pitch) + LANE / 16)
#define STORE_MATRIX(m, array, at, pitch) put_sum(m, (__local float2*)((array) + (at)), 2 * (pitch), LANE)
#define MULTIPLY_ADD(a, b, sum) multiply_add(a, b, sum)
#define NEAR uint4
#define LOAD_NEAR(near, at) near = RIGHT_AT((at) + LANE)
#define FRAGMENT(m, near) m = near
#define LEFT_OF(m, a, b, c, d) m = (uint4)((a), (b), (c), (d))
#define SUM_UP(m) (m).s0145
#define SUM_LOW(m) (m).s2367
#define SCALE_SUM(m, up, low) m *= (float8)((up), (up), (low), (low), (up), (up), (low), (low))
#define FROM_BITS(v) as_float4(v)
#define TO_BITS(v) as_uint4(v)
#define RAW8 uint4
#define RAW8_ZERO ((uint4)(0))
#define SUBGROUP (LOCAL_ID(0) / WIDTH)
#define LANE (LOCAL_ID(0) % WIDTH)
#define SUBGROUP_BARRIER __asm__ volatile("bar.warp.sync 0xffffffff;" : : : "memory")
#define LOAD_FOUR(name, way) \
    uint4 name(__local const uint4* from) { \
        uint a, b, c, d; \
        __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4" way ".shared.b16 {%0, %1, %2, %3}, [%4];" \
            : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"((uint)(size_t)from) : "memory"); \
        return (uint4)(a, b, c, d); \
    }
LOAD_FOUR(four_matrices, "")
LOAD_FOUR(four_turned, ".trans")
float4 multiply_half(uint4 a, uint2 b, float4 sum) {
    float x = sum.x, y = sum.y, z = sum.z, w = sum.w;
    __asm__("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
        " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(x), "+f"(y), "+f"(z), "+f"(w) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
    return (float4)(x, y, z, w);
}
float8 multiply_add(uint4 a, uint4 b, float8 sum) {
    return (float8)(multiply_half(a, b.xy, sum.lo), multiply_half(a, b.zw, sum.hi));
}
void put_sum(float8 m, __local float2* to, int pitch, int lane) {
    to += lane / 4 * pitch + lane % 4;
    to[0] = m.s01;
    to[4] = m.s45;
    to[8 * pitch] = m.s23;
    to[8 * pitch + 4] = m.s67;
}
