// One filter a channel: PIXELS adjacent outputs of a row x one stack of four channels a work-item.
// Weights: [stacks][kh][kw] vectors of four channels.
{
    const int blocks = (ow + PIXELS - 1) / PIXELS;
    const int block = GLOBAL_ID(0);
    if (block >= blocks * oh) return;
    const int oy = block / blocks;
    const int ox = (block - oy * blocks) * PIXELS;
    const int stack = GROUP_ID(1);
    const int picture = GROUP_ID(2);
    const int plane = (picture * src_stacks + src_stack0 + stack) * h * w;

    WIDE4 sums[SUMS];
    UNROLL for (int p = 0; p < PIXELS; ++p) sums[p] = TO_WIDE4(LOAD_bias(stack));
    CHUNK_SUMS
    for (int ky = 0; ky < kh; ++ky) {
        const int iy = oy * sh - pad_t + ky * dh;
        const bool row_inside = INSIDE(iy, h);
        const int row = plane + CLAMPED(iy, h) * w;
        const int image_row = (picture * src_stacks + src_stack0 + stack) * h + CLAMPED(iy, h);
        for (int kx = 0; kx < kw; ++kx) {
            const FLOAT4 weights = LOAD_weight((stack * kh + ky) * kw + kx);
            UNROLL for (int p = 0; p < PIXELS; ++p) {
                const int ix = (ox + p) * sw - pad_l + kx * dw;
                const FLOAT4 loaded = LOAD_src_AT(row + CLAMPED(ix, w), CLAMPED(ix, w), image_row);
                const FLOAT4 value = row_inside && INSIDE(ix, w) ? loaded : SPLAT(0.0f);
                chunk[p] = MAD(value, weights, chunk[p]);
            }
        }
        FOLD(kw)
    }
    FOLD_REST
    UNROLL for (int p = 0; p < PIXELS; ++p) {
        if (ox + p < ow) {
            const int pixel = oy * ow + ox + p;
            WIDE4 sum = sums[p];
            if (has_residual != 0) {
                sum += TO_WIDE4(LOAD_residual((picture * residual_stacks + residual_stack0 + stack) * oh * ow + pixel));
            }
            const int to = picture * dst_stacks + dst_stack0 + stack;
            STORE_dst_AT(to * oh * ow + pixel, ox + p, to * oh + oy, ACTIVATE(sum));
        }
    }
}
