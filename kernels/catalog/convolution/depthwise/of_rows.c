// A filter a channel of an image in rows of channels: PIXELS adjacent outputs of a row x one vector of four channels a
// work-item. Neighbours have the pixel's next vectors. Weights: [kh][kw][stacks] vectors of four channels.
{
    const int blocks = (ow + PIXELS - 1) / PIXELS;
    const int block = GLOBAL_ID(0) / stacks;
    LEAVE_IF(block >= blocks * oh);
    const int stack = GLOBAL_ID(0) - block * stacks;
    const int picture = GROUP_ID(2);
    const int oy = block / blocks;
    const int ox = (block - oy * blocks) * PIXELS;
    const int plane = picture * h * w;

    WIDE4 sums[SUMS];
    UNROLL for (int p = 0; p < PIXELS; ++p) sums[p] = TO_WIDE4(LOAD_bias(stack));
    CHUNK_SUMS
    for (int ky = 0; ky < kh; ++ky) {
        INCLUDE source_row
        for (int kx = 0; kx < kw; ++kx) {
            const FLOAT4 weights = LOAD_weight((ky * kw + kx) * stacks + stack);
            UNROLL for (int p = 0; p < PIXELS; ++p) {
                const int ix = (ox + p) * sw - pad_l + kx * dw;
                const FLOAT4 loaded = LOAD_src((row + CLAMPED(ix, w)) * stacks + stack);
                const FLOAT4 value = row_inside && INSIDE(ix, w) ? loaded : SPLAT(0.0f);
                chunk[p] = MAD(value, weights, chunk[p]);
            }
        }
        FOLD(kw)
    }
    FOLD_REST
    UNROLL for (int p = 0; p < PIXELS; ++p) {
        if (!LEFT && ox + p < ow) {
            const int to = ((picture * oh + oy) * ow + ox + p) * stacks + stack;
            WIDE4 sum = sums[p];
            if (has_residual != 0) sum += TO_WIDE4(LOAD_residual(to));
            STORE_dst(to, ACTIVATE(sum));
        }
    }
}
