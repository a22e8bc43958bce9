// The windows of a convolution as rows: for each tap its channels side by side.
{
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
}
