// Eight halves at a multiple of sixteen bytes are one read; four of them are a vector.
#define EIGHT uint4
#define LOW4(v) four_of((v).xy)
#define HIGH4(v) four_of((v).zw)
float4 four_of(uint2 v) {
#ifdef __NV_CL_C_VERSION
    const ushort4 bits = as_ushort4(v);
    return (float4)(half_of(bits.x), half_of(bits.y), half_of(bits.z), half_of(bits.w));
#else
    return vload_half4(0, (const half*)&v);
#endif
}
