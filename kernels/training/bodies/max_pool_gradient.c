// Each pixel adds up the gradients of the windows in which it was the largest.
// WHOLE: a work-item takes a pixel with all its channels, as suits a CPU; sizes are constants then.
{
#ifdef WHOLE
    const int pixel = GLOBAL_ID(0);
    if (pixel >= count / stride) return;
    const int x = pixel % w;
    const int y = pixel / w % h;
    const int image = pixel / w / h;
    float sums[stride];
    for (int channel = 0; channel < stride; ++channel) sums[channel] = 0.0f;
    for (int ky = 0; ky < kh; ++ky) {
        const int up = y + pad_t - ky;
        if (up < 0 || up % sh > 0 || up / sh >= oh) continue;
        for (int kx = 0; kx < kw; ++kx) {
            const int left = x + pad_l - kx;
            if (left < 0 || left % sw > 0 || left / sw >= ow) continue;
            const int at = ((image * oh + up / sh) * ow + left / sw) * stride;
            const float place = FLOAT(ky * kw + kx);
            for (int channel = 0; channel < stride; ++channel) {
                sums[channel] += LOAD_winners(at + channel) == place ? LOAD_src(at + channel) : 0.0f;
            }
        }
    }
    for (int channel = 0; channel < stride; ++channel) STORE_dst(pixel * stride + channel, sums[channel]);
#else
    const int i = GLOBAL_ID(0);
    if (i >= count) return;
    const int channel = i % stride;
    const int x = i / stride % w;
    const int y = i / stride / w % h;
    const int image = i / stride / w / h;
    float sum = 0.0f;
    for (int ky = 0; ky < kh; ++ky) {
        const int up = y + pad_t - ky;
        if (up < 0 || up % sh > 0 || up / sh >= oh) continue;
        for (int kx = 0; kx < kw; ++kx) {
            const int left = x + pad_l - kx;
            if (left < 0 || left % sw > 0 || left / sw >= ow) continue;
            const int at = ((image * oh + up / sh) * ow + left / sw) * stride + channel;
            if (LOAD_winners(at) == FLOAT(ky * kw + kx)) sum += LOAD_src(at);
        }
    }
    STORE_dst(i, sum);
#endif
}
