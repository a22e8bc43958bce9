// A device may be wrong by 2.5 units in the last place.
#if defined(FP_FAST_FMAF) || defined(__NV_CL_C_VERSION)
float DIVIDE(float a, float b) {
    const float q = a / b, better = fma(fma(-q, b, a), 1.0f / b, q);
    return isfinite(better) ? better : q;
}
#else
#define DIVIDE(a, b) ((a) / (b))
#endif
