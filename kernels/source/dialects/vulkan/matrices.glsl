// Matrices of a subgroup, in elements of the arrays that they are loaded from. The three sizes are constants of their
// own, so that the types differ (`kernels/codegen/cooperative_matrices.py`).
layout(constant_id = 3) const uint MATRIX_ROWS = UNIT_ROWS;
layout(constant_id = 4) const uint MATRIX_COLUMNS = UNIT_COLUMNS;
layout(constant_id = 5) const uint MATRIX_DEPTH = UNIT_DEPTH;
#define MATRIX_LEFT fcoopmatNV<16, gl_ScopeSubgroup, MATRIX_ROWS, MATRIX_DEPTH>
#define MATRIX_RIGHT fcoopmatNV<16, gl_ScopeSubgroup, MATRIX_DEPTH, MATRIX_COLUMNS>
#define MATRIX_SUM fcoopmatNV<32, gl_ScopeSubgroup, MATRIX_ROWS, MATRIX_COLUMNS>
#define NO_SUM MATRIX_SUM(0.0f)
#define LOAD_LEFT(m, array, at, pitch) coopMatLoadNV((m), array, (at), (pitch), false)
#define LOAD_COLUMNS(m, array, at, pitch) coopMatLoadNV((m), array, (at), (pitch), true)
#define LOAD_ROWS(m, array, at, pitch) coopMatLoadNV((m), array, (at), (pitch), false)
#define STORE_MATRIX(m, array, at, pitch) coopMatStoreNV((m), array, (at), (pitch), false)
#define MULTIPLY_ADD(a, b, sum) coopMatMulAddNV((a), (b), (sum))
#define FROM_BITS(v) uintBitsToFloat(v)
#define TO_BITS(v) floatBitsToUint(v)
#define NEAR uvec4
#define LOAD_NEAR(near, at) near = RIGHT_AT((at) + LANE)
#define FRAGMENT(m, near) { \
    f16vec2 two = unpackFloat2x16((near).x); m[0] = two.x; m[1] = two.y; \
    two = unpackFloat2x16((near).y); m[2] = two.x; m[3] = two.y; \
    two = unpackFloat2x16((near).z); m[4] = two.x; m[5] = two.y; \
    two = unpackFloat2x16((near).w); m[6] = two.x; m[7] = two.y; }
#define LEFT_OF(m, a, b, c, d) FRAGMENT(m, uvec4((a), (c), (b), (d)))
#define ELEMENT(m, e) float(m[e])
#define FILL_SUM(m, v) { \
    m = NO_SUM; m[0] = (v).x; m[1] = (v).y; m[2] = (v).z; m[3] = (v).w; \
    m[4] = (v).x; m[5] = (v).y; m[6] = (v).z; m[7] = (v).w; }
#define SUM_UP(m) vec4((m)[0], (m)[1], (m)[2], (m)[3])
#define SUM_LOW(m) vec4((m)[4], (m)[5], (m)[6], (m)[7])
#define SCALE_SUM(m, up, low) { \
    m[0] *= (up); m[1] *= (up); m[2] *= (up); m[3] *= (up); \
    m[4] *= (low); m[5] *= (low); m[6] *= (low); m[7] *= (low); }
#define LOAD_SUM(m, array, at, pitch) coopMatLoadNV((m), array, (at), (pitch), false)
#define EXCHANGE(to, v, mask) to = subgroupShuffleXor((v), (mask))
#define EXP2(a) exp2(a)
#define TWO_HALVES(a, b) packHalf2x16(vec2((a), (b)))
#define RAW8 uvec4
#define RAW8_ZERO uvec4(0)
#if SIDES > 5 || defined(PAIRED)
#define SUBGROUP (LOCAL_ID(0) / WIDTH)
#define LANE (LOCAL_ID(0) % WIDTH)
#else
#define SUBGROUP int(gl_SubgroupID)
#define LANE int(gl_SubgroupInvocationID)
#endif
#define SUBGROUP_BARRIER subgroupBarrier()
