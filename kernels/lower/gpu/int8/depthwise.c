// FILTERS filters a channel, in whole numbers: PIXELS outputs of one stack of four channels a work-item.
// Weights: the sums of each stack's, then [stacks][kh][kw] vectors of four channels.
{
    const int stack = GROUP_ID(1);
    const int picture = GROUP_ID(2);
    const int plane = picture * in_stacks * h * w;
    const FLOAT4 steps_here = LOAD_steps(picture * per_picture);
    const int outside = (TO_INT(steps_here.y) & 255) * 0x01010101;
    const int first = GROUP_ID(0) * PIXELS * LOCAL_SIZE(0) + LOCAL_ID(0);
    int top[PIXELS];
    int left[PIXELS];
    INT4 sums[PIXELS];
    UNROLL for (int p = 0; p < PIXELS; ++p) {
        const int at = IMIN(first + p * LOCAL_SIZE(0), oh * ow - 1);
        top[p] = at / ow * sh - pad_t;
        left[p] = at % ow * sw - pad_l;
        sums[p] = INT_SPLAT(0);
    }
    for (int ky = 0; ky < kh; ++ky) {
        for (int kx = 0; kx < kw; ++kx) {
            const INT4 weights = LOAD_weight(last_stack + 1 + (stack * kh + ky) * kw + kx);
            UNROLL for (int p = 0; p < PIXELS; ++p) {
                const int iy = top[p] + ky * dh;
                const int ix = left[p] + kx * dw;
                const int from = plane + CLAMPED(iy, h) * w + CLAMPED(ix, w);
                const bool inside = INSIDE(iy, h) && INSIDE(ix, w);
#if FILTERS == 1
                const int loaded = LOAD_src(from + stack * h * w);
                const int value = inside ? loaded : outside;
                sums[p] += BYTES(value) * weights;
#else
                INT4 value = INT_SPLAT(TO_INT(steps_here.y));
                if (inside) {
                    UNROLL for (int lane = 0; lane < 4; ++lane) {
                        const int channel = IMIN((stack * 4 + lane) / FILTERS, channels - 1);
                        const int loaded = LOAD_src(from + channel / 4 * h * w);
                        const INT4 four = BYTES(loaded);
                        const int which = channel % 4;
                        const int found = which == 0 ? four.x : which == 1 ? four.y : which == 2 ? four.z : four.w;
                        if (lane == 0) value.x = found; else if (lane == 1) value.y = found;
                        else if (lane == 2) value.z = found; else value.w = found;
                    }
                }
                sums[p] += value * weights;
#endif
            }
        }
    }
    for (int p = 0; p < PIXELS; ++p) {
        const int pixel = first + p * LOCAL_SIZE(0);
        if (pixel < oh * ow) {
            INT4 sum = sums[0];
            UNROLL for (int j = 0; j < PIXELS; ++j) if (j == p) sum = sums[j];
            INCLUDE ending
        }
    }
}
