// One number a work-item, multiplied number by number. `group_in` and `group_out`: channels of a group.
// Weights as the network has them: [out channel][in channel of the group][kh][kw].
{
    const int pixel = GLOBAL_ID(0);
    if (pixel >= oh * ow) return;
    const int channel = GROUP_ID(1);
    const int picture = GROUP_ID(2);
    const int to = ((picture * dst_stacks + dst_stack0 + channel / 4) * oh * ow + pixel) * 4 + channel % 4;
    if (channel >= channels) {  // a lane beyond the last channel
        STORE_dst(to, 0.0f);
        return;
    }
    const int top = pixel / ow * sh - pad_t;
    const int left = pixel % ow * sw - pad_l;
    int weight_at = channel * group_in * kh * kw;
    float sum = 0.0f;
    for (int c = 0; c < group_in; ++c) {
        const int from = channel / group_out * group_in + c;
        const int plane = (picture * src_stacks + src_stack0 + from / 4) * h;
        for (int ky = 0; ky < kh; ++ky) {
            const int y = top + ky * dh;
            for (int kx = 0; kx < kw; ++kx) {
                const int x = left + kx * dw;
                if (INSIDE(y, h) && INSIDE(x, w)) {
                    const int at = ((plane + PLACE(y, h)) * w + PLACE(x, w)) * 4 + from % 4;
                    sum = MAD(LOAD_src(at), LOAD_weight(weight_at), sum);
                }
                ++weight_at;
            }
        }
    }
    sum += LOAD_bias(channel);
    if (has_residual != 0) {
        sum += LOAD_residual(((picture * residual_stacks + residual_stack0 + channel / 4) * oh * ow + pixel) * 4 + channel % 4);
    }
    STORE_dst(to, ACTIVATE1(sum));
}
