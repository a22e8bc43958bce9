// The gradient of `unfold`: each pixel adds up what all windows that hold it have for it.
// WHOLE: a work-item takes a pixel with all its channels, as suits a CPU; sizes are constants then.
{
#ifdef WHOLE
    const int pixel = GLOBAL_ID(0);
    if (pixel >= count / src_stride) return;
    const int x = pixel % w;
    const int y = pixel / w % h;
    const int image = pixel / w / h;
    float sums[src_stride];
    for (int channel = 0; channel < src_stride; ++channel) sums[channel] = 0.0f;
    for (int ky = 0; ky < kh; ++ky) {
        const int up = y + pad_t - ky * dh;
        if (up < 0 || up % sh > 0 || up / sh >= oh) continue;
        for (int kx = 0; kx < kw; ++kx) {
            const int left = x + pad_l - kx * dw;
            if (left < 0 || left % sw > 0 || left / sw >= ow) continue;
            const int from = ((image * oh + up / sh) * ow + left / sw) * stride + (ky * kw + kx) * channels;
            for (int channel = 0; channel < channels; ++channel) sums[channel] += LOAD_src(from + channel);
        }
    }
    for (int channel = 0; channel < src_stride; ++channel) STORE_dst(pixel * src_stride + channel, sums[channel]);
#else
    const int i = GLOBAL_ID(0);
    if (i >= count) return;
    const int channel = i % src_stride;
    const int x = i / src_stride % w;
    const int y = i / src_stride / w % h;
    const int image = i / src_stride / w / h;
    float sum = 0.0f;
    if (channel < channels) {
        for (int ky = 0; ky < kh; ++ky) {
            const int up = y + pad_t - ky * dh;
            if (up < 0 || up % sh > 0 || up / sh >= oh) continue;
            for (int kx = 0; kx < kw; ++kx) {
                const int left = x + pad_l - kx * dw;
                if (left < 0 || left % sw > 0 || left / sw >= ow) continue;
                sum += LOAD_src(((image * oh + up / sh) * ow + left / sw) * stride + (ky * kw + kx) * channels + channel);
            }
        }
    }
    STORE_dst(i, sum);
#endif
}
