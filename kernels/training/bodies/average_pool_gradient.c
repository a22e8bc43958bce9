// Each pixel adds up its share of the gradients of the windows that hold it.
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
            const int first_x = left - pad_l;
            const int first_y = up - pad_t;
            const int across = IMIN(first_x + kw, w) - IMAX(first_x, 0);
            const int down = IMIN(first_y + kh, h) - IMAX(first_y, 0);
            const int at = ((image * oh + up / sh) * ow + left / sw) * stride;
            const float share = FLOAT(across * down);
            for (int channel = 0; channel < stride; ++channel) sums[channel] += LOAD_src(at + channel) / share;
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
            const int first_x = left - pad_l;
            const int first_y = up - pad_t;
            const int across = IMIN(first_x + kw, w) - IMAX(first_x, 0);
            const int down = IMIN(first_y + kh, h) - IMAX(first_y, 0);
            sum += LOAD_src(((image * oh + up / sh) * ow + left / sw) * stride + channel) / FLOAT(across * down);
        }
    }
    STORE_dst(i, sum);
#endif
}
