// The largest of each window, and which of its places it has: the first of several.
// WHOLE: a work-item takes a pixel with all its channels, as suits a CPU; sizes are constants then.
{
#ifdef WHOLE
    const int pixel = GLOBAL_ID(0);
    if (pixel >= count / stride) return;
    const int x = pixel % ow * sw - pad_l;
    const int y = pixel / ow % oh * sh - pad_t;
    const int image = pixel / ow / oh;
    float largest[stride];
    float places[stride];
    for (int channel = 0; channel < stride; ++channel) places[channel] = -1.0f;
    for (int channel = 0; channel < stride; ++channel) largest[channel] = 0.0f;
    for (int ky = 0; ky < kh; ++ky) {
        if (y + ky < 0 || y + ky >= h) continue;
        for (int kx = 0; kx < kw; ++kx) {
            if (x + kx < 0 || x + kx >= w) continue;
            const int at = ((image * h + y + ky) * w + x + kx) * stride;
            const float place = FLOAT(ky * kw + kx);
            for (int channel = 0; channel < stride; ++channel) {
                const float value = LOAD_src(at + channel);
                const bool takes = places[channel] < 0.0f || value > largest[channel];
                largest[channel] = takes ? value : largest[channel];
                places[channel] = takes ? place : places[channel];
            }
        }
    }
    for (int channel = 0; channel < stride; ++channel) STORE_dst(pixel * stride + channel, largest[channel]);
    for (int channel = 0; channel < stride; ++channel) STORE_winners(pixel * stride + channel, places[channel]);
#else
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
#endif
}
