// The mean of what each window has inside the image.
{
    const int i = GLOBAL_ID(0);
    if (i >= count) return;
    const int channel = i % stride;
    const int x = i / stride % ow * sw - pad_l;
    const int y = i / stride / ow % oh * sh - pad_t;
    const int image = i / stride / ow / oh;
    float sum = 0.0f;
    float inside = 0.0f;
    for (int ky = 0; ky < kh; ++ky) {
        if (y + ky < 0 || y + ky >= h) continue;
        for (int kx = 0; kx < kw; ++kx) {
            if (x + kx < 0 || x + kx >= w) continue;
            sum += LOAD_src(((image * h + y + ky) * w + x + kx) * stride + channel);
            inside += 1.0f;
        }
    }
    STORE_dst(i, sum / inside);
}
