// The largest of each window, and which of its places it has: the first of several.
{
    const int i = GLOBAL_ID(0);
    if (i >= count) return;
    const int channel = i % stride;
    const int x = i / stride % ow * sw - pad_l;
    const int y = i / stride / ow % oh * sh - pad_t;
    const int image = i / stride / ow / oh;
    float largest = 0.0f;
    int winner = -1;
    for (int ky = 0; ky < kh; ++ky) {
        if (y + ky < 0 || y + ky >= h) continue;
        for (int kx = 0; kx < kw; ++kx) {
            if (x + kx < 0 || x + kx >= w) continue;
            const float value = LOAD_src(((image * h + y + ky) * w + x + kx) * stride + channel);
            if (winner < 0 || value > largest) {
                largest = value;
                winner = ky * kw + kx;
            }
        }
    }
    STORE_dst(i, largest);
    STORE_winners(i, FLOAT(winner));
}
