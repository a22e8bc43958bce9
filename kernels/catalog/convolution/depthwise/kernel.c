// A filter a channel, or FILTERS of them: PIXELS adjacent outputs of a row x one stack of four channels a work-item.
// Weights: [stacks][kh][kw] vectors of four channels.
{
    INCLUDE row_block
    INCLUDE sums
    for (int ky = 0; ky < kh; ++ky) {
        INCLUDE source_row
        for (int kx = 0; kx < kw; ++kx) {
            const FLOAT4 weights = LOAD_weight((stack * kh + ky) * kw + kx);
            UNROLL for (int p = 0; p < PIXELS; ++p) {
                const int ix = (ox + p) * sw - pad_l + kx * dw;
                const FLOAT4 loaded = LOAD_src(row + CLAMPED(ix, w));
                const FLOAT4 value = row_inside && INSIDE(ix, w) ? OWN(loaded) : SPLAT(0.0f);
                chunk[p] = MAD(value, weights, chunk[p]);
            }
        }
        FOLD(kw)
    }
    INCLUDE store
}
