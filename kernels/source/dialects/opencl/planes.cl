// Four numbers in single as four halves lie in memory.
#ifdef __NV_CL_C_VERSION
uint2 raw4_of(float4 v) { return as_uint2(HALVES_OF(v)); }
#else
uint2 raw4_of(float4 v) {
    uint2 bits;
    vstorea_half4(v, 0, (half*)&bits);
    return bits;
}
#endif
