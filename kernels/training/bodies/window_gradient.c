    // Each pixel adds up what SHARE says of the gradients of the windows that hold it.
    INCLUDE each_pixel
    const int x = pixel % w;
    const int y = pixel / w % h;
    const int image = pixel / w / h;
    float sums[EACH];
    for (int channel = 0; channel < EACH; ++channel) sums[channel] = 0.0f;
    for (int ky = 0; ky < kh; ++ky) {
        const int up = y + pad_t - ky * DOWN;
        if (up < 0 || up % sh > 0 || up / sh >= oh) continue;
        for (int kx = 0; kx < kw; ++kx) {
            const int left = x + pad_l - kx * ACROSS;
            if (left < 0 || left % sw > 0 || left / sw >= ow) continue;
            const int at = ((image * oh + up / sh) * ow + left / sw) * stride;
            for (int channel = 0; channel < EACH; ++channel) sums[channel] += SHARE(at, first + channel);
        }
    }
    for (int channel = 0; channel < EACH; ++channel) STORE_dst(pixel * WIDTH + first + channel, sums[channel]);
