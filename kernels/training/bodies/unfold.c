// The windows of a convolution as rows: for each tap its channels side by side.
// WHOLE: a work-item takes a row, as suits a CPU; sizes are constants then.
{
#ifdef WHOLE
    const int row = GLOBAL_ID(0);
    if (row >= rows) return;
    const int left = row % ow * sw - pad_l;
    const int top = row / ow % oh * sh - pad_t;
    const int image = row / ow / oh;
    int to = row * stride;
    for (int ky = 0; ky < kh; ++ky) {
        const int y = top + ky * dh;
        for (int kx = 0; kx < kw; ++kx) {
            const int x = left + kx * dw;
            if (x >= 0 && x < w && y >= 0 && y < h) {
                const int from = ((image * h + y) * w + x) * src_stride;
                for (int channel = 0; channel < channels; ++channel) STORE_dst(to + channel, LOAD_src(from + channel));
            } else {
                for (int channel = 0; channel < channels; ++channel) STORE_dst(to + channel, 0.0f);
            }
            to += channels;
        }
    }
    for (; to < (row + 1) * stride; ++to) STORE_dst(to, 0.0f);
#else
    const int i = GLOBAL_ID(0);
    if (i >= rows * stride) return;
    const int depth = i % stride;
    const int row = i / stride;
    const int tap = depth / channels;
    const int x = row % ow * sw + tap % kw * dw - pad_l;
    const int y = row / ow % oh * sh + tap / kw * dh - pad_t;
    float value = 0.0f;
    if (tap < kh * kw && x >= 0 && x < w && y >= 0 && y < h) {
        value = LOAD_src(((row / ow / oh * h + y) * w + x) * src_stride + depth % channels);
    }
    STORE_dst(i, value);
#endif
}
