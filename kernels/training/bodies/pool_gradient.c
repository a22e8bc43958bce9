    // Each pixel adds up what SHARE says of the gradients of the windows that hold it.
    // WHOLE: a work-item takes a pixel with all its channels, as suits a CPU; sizes are constants then.
#ifdef WHOLE
    const int pixel = GLOBAL_ID(0);
    if (pixel >= count / stride) return;
    float sums[stride];
    for (int channel = 0; channel < stride; ++channel) sums[channel] = 0.0f;
#else
    const int i = GLOBAL_ID(0);
    if (i >= count) return;
    const int pixel = i / stride;
    float sum = 0.0f;
#endif
    const int x = pixel % w;
    const int y = pixel / w % h;
    const int image = pixel / w / h;
    for (int ky = 0; ky < kh; ++ky) {
        const int up = y + pad_t - ky;
        if (up < 0 || up % sh > 0 || up / sh >= oh) continue;
        for (int kx = 0; kx < kw; ++kx) {
            const int left = x + pad_l - kx;
            if (left < 0 || left % sw > 0 || left / sw >= ow) continue;
            const int at = ((image * oh + up / sh) * ow + left / sw) * stride;
#ifdef WHOLE
            for (int channel = 0; channel < stride; ++channel) sums[channel] += SHARE(at + channel);
#else
            sum += SHARE(at + i % stride);
#endif
        }
    }
#ifdef WHOLE
    for (int channel = 0; channel < stride; ++channel) STORE_dst(pixel * stride + channel, sums[channel]);
#else
    STORE_dst(i, sum);
#endif
