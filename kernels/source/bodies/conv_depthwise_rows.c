// One filter a channel: PIXELS adjacent outputs of a row x one stack of four channels a work-item. A window of KW adjacent
// columns, SW apart from one output to the next: each row of the source is loaded once for all of them.
// Weights: [stacks][kh][kw] vectors of four channels.
{
    const int blocks = (ow + PIXELS - 1) / PIXELS;
    const int block = GLOBAL_ID(0);
    LEAVE_IF(block >= blocks * oh);
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
        FLOAT4 value[COLUMNS];
        UNROLL for (int c = 0; c < COLUMNS; ++c) {
            const int ix = ox * SW - pad_l + c;
            const FLOAT4 loaded = LOAD_src(row + CLAMPED(ix, w));
            value[c] = row_inside && INSIDE(ix, w) ? loaded : SPLAT(0.0f);
        }
        FETCH_WEIGHTS((stack * kh + ky) * KW);
        UNROLL for (int kx = 0; kx < KW; ++kx) {
            const FLOAT4 weights_x = WEIGHT(kx);
            UNROLL for (int p = 0; p < PIXELS; ++p) chunk[p] = MAD(value[p * SW + kx], weights_x, chunk[p]);
        }
        FOLD(KW)
    }
    FOLD_REST
    UNROLL for (int p = 0; p < PIXELS; ++p) {
        if (!LEFT && ox + p < ow) {
            const int pixel = oy * ow + ox + p;
            WIDE4 sum = sums[p];
            if (has_residual != 0) {
                sum += TO_WIDE4(LOAD_residual((picture * residual_stacks + residual_stack0 + stack) * oh * ow + pixel));
            }
            STORE_dst((picture * dst_stacks + dst_stack0 + stack) * oh * ow + pixel, ACTIVATE(sum));
        }
    }
}
