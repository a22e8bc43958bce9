// Cephes' `logf`: Vulkan's own may be wrong by 2^-21 between 0.5 and 2, however little is left of the logarithm there.
// Zero, infinity, NaN, what is negative or denormal is the driver's.
float LOG(float x) {
    if (!(x >= 1.17549435e-38f && x < -LOWEST)) return log(x);
    const uint bits = floatBitsToUint(x);
    const float half_of = uintBitsToFloat((bits & 0x007fffffu) | 0x3f000000u);
    const bool small = half_of < 0.707106781186547524f;
    const float e = float(int(bits >> 23) - 126) - (small ? 1.0f : 0.0f);
    const float m = (small ? half_of + half_of : half_of) - 1.0f;
    const float z = m * m;
    float sum = 7.0376836292e-2f;
    sum = fma(sum, m, -1.1514610310e-1f);
    sum = fma(sum, m, 1.1676998740e-1f);
    sum = fma(sum, m, -1.2420140846e-1f);
    sum = fma(sum, m, 1.4249322787e-1f);
    sum = fma(sum, m, -1.6668057665e-1f);
    sum = fma(sum, m, 2.0000714765e-1f);
    sum = fma(sum, m, -2.4999993993e-1f);
    sum = fma(sum, m, 3.3333331174e-1f) * m * z;
    sum = fma(e, -2.12194440e-4f, sum);
    sum = fma(-0.5f, z, sum);
    return fma(e, 0.693359375f, m + sum);
}
