// The largest of each window, and which of its places it has: the first of several.
{
#define WIDTH stride
    INCLUDE each_pixel
    const int x = pixel % ow * sw - pad_l;
    const int y = pixel / ow % oh * sh - pad_t;
    const int image = pixel / ow / oh;
    float largest[EACH];
    float places[EACH];
    for (int channel = 0; channel < EACH; ++channel) places[channel] = -1.0f;
    for (int channel = 0; channel < EACH; ++channel) largest[channel] = 0.0f;
    for (int ky = 0; ky < kh; ++ky) {
        if (y + ky < 0 || y + ky >= h) continue;
        for (int kx = 0; kx < kw; ++kx) {
            if (x + kx < 0 || x + kx >= w) continue;
            const int at = ((image * h + y + ky) * w + x + kx) * stride + first;
            const float place = FLOAT(ky * kw + kx);
            for (int channel = 0; channel < EACH; ++channel) {
                const float value = LOAD_src(at + channel);
                const bool takes = places[channel] < 0.0f || value > largest[channel];
                largest[channel] = takes ? value : largest[channel];
                places[channel] = takes ? place : places[channel];
            }
        }
    }
    for (int channel = 0; channel < EACH; ++channel) STORE_dst(pixel * stride + first + channel, largest[channel]);
    for (int channel = 0; channel < EACH; ++channel) STORE_winners(pixel * stride + first + channel, places[channel]);
}
