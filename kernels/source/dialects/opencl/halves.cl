// Four halves lie at a multiple of eight bytes. NVIDIA's compiler makes four accesses of two bytes of `vloada_half4`
// and `vstorea_half4`.
#ifdef __NV_CL_C_VERSION
float half_of(ushort bits) {
    float x;
    __asm__("{ .reg .f16 h; mov.b16 h, %1; cvt.f32.f16 %0, h; }" : "=f"(x) : "h"(bits));
    return x;
}
ushort bits_of(float x) {
    ushort bits;
    __asm__("{ .reg .f16 h; cvt.rn.f16.f32 h, %1; mov.b16 %0, h; }" : "=h"(bits) : "f"(x));
    return bits;
}
#define HALVES_OF(v) ((ushort4)(bits_of((v).x), bits_of((v).y), bits_of((v).z), bits_of((v).w)))
float4 load_half4(int i, __global const half* from) {
    const ushort4 bits = ((__global const ushort4*)from)[i];
    return (float4)(half_of(bits.x), half_of(bits.y), half_of(bits.z), half_of(bits.w));
}
float4 load_half4_in_order(int i, __global const half* from) {
    const ushort4 bits = ((volatile __global const ushort4*)from)[i];
    return (float4)(half_of(bits.x), half_of(bits.y), half_of(bits.z), half_of(bits.w));
}
void store_half4(float4 v, int i, __global half* to) { ((__global ushort4*)to)[i] = HALVES_OF(v); }
#define PUT_HALF4(v, i, to) (((__local ushort4*)(to))[i] = HALVES_OF(v))
#else
#define load_half4(i, from) vloada_half4((i), (from))
#define load_half4_in_order(i, from) vloada_half4((i), (from))
#define store_half4(v, i, to) vstorea_half4((v), (i), (to))
#define PUT_HALF4(v, i, to) vstorea_half4((v), (i), (__local half*)(to))
#endif
