// One work-item: PIXELS adjacent outputs of a row x VECTORS vectors of LANES output channels.
// Weights: [out / (VECTORS * LANES)][in stacks][kh][kw][VECTORS][4 inputs] vectors of LANES outputs.
{
    INCLUDE row_block
    INCLUDE window_sums
    int weight_at = GROUP_ID(1) * in_stacks * kh * kw * VECTORS * 4;
    IN_CHUNKS(s, in_stacks, kh * kw) {
        const int plane = (picture * src_stacks + in_first + s) * h * w;
        for (int ky = 0; ky < kh; ++ky) {
            INCLUDE source_row
            for (int kx = 0; kx < kw; ++kx) {
                FLOAT4 value[PIXELS];
                UNROLL for (int p = 0; p < PIXELS; ++p) {
                    const int ix = (ox + p) * sw - pad_l + kx * dw;
                    const FLOAT4 loaded = LOAD_src(row + CLAMPED(ix, w));
                    value[p] = row_inside && INSIDE(ix, w) ? loaded : SPLAT(0.0f);
                }
                FETCH_WEIGHTS(weight_at);
                const int ahead = 0;
                INCLUDE vector_products
                weight_at += VECTORS * 4;
            }
            FOLD(kw)
        }
    }
    INCLUDE window_store
}
