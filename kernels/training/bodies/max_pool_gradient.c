// Each pixel adds up the gradients of the windows in which it was the largest.
{
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
}
