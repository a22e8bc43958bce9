// im2col: of each window the numbers under its taps as channels, those of one channel next to each other, zero outside
// the image. A work-item writes four channels of a pixel.
{
    const int pixel = GLOBAL_ID(0);
    if (pixel >= oh * ow) return;
    const int row = GROUP_ID(1);
    const int picture = GROUP_ID(2);
    const int taps = kh * kw;
    const int oy = pixel / ow;
    const int top = oy * sh - pad_t;
    const int left = (pixel - oy * ow) * sw - pad_l;
    FLOAT4 result = SPLAT(0.0f);
    UNROLL for (int lane = 0; lane < 4; ++lane) {
        const int number = 4 * row + lane;
        const int channel = number / taps;
        const int tap = number - channel * taps;
        const int y = top + tap / kw * dh;
        const int x = left + tap % kw * dw;
        const int of = channel % 4;
        if (channel < channels && y >= 0 && y < h && x >= 0 && x < w) {
            const FLOAT4 found = LOAD_src(((picture * src_stacks + src_stack0 + channel / 4) * h + y) * w + x);
            const FLOAT4 one = of == 0 ? SPLAT(found.x) : of == 1 ? SPLAT(found.y) : of == 2 ? SPLAT(found.z) : SPLAT(found.w);
            result = VEC4(lane == 0 ? one.x : result.x, lane == 1 ? one.x : result.y, lane == 2 ? one.x : result.z,
                          lane == 3 ? one.x : result.w);
        }
    }
    STORE_dst((picture * dst_stacks + dst_stack0 + row) * oh * ow + pixel, result);
}
