// A window of KW adjacent columns, stride 1: each row of the source is loaded once for all of them.
// One work-item: PIXELS adjacent outputs of a row x VECTORS vectors of LANES output channels.
// Weights: [out / (VECTORS * LANES)][in stacks][kh][KW][VECTORS][4 inputs] vectors of LANES outputs.
{
    INCLUDE row_block
    INCLUDE window_sums
    int weight_at = GROUP_ID(1) * in_stacks * kh * KW * VECTORS * 4;
    IN_CHUNKS(s, in_stacks, kh * KW) {
        const int plane = (picture * src_stacks + in_first + s) * h * w;
        for (int ky = 0; ky < kh; ++ky) {
            INCLUDE source_row
            FLOAT4 value[COLUMNS];
            UNROLL for (int c = 0; c < COLUMNS; ++c) {
                const int ix = ox - pad_l + c;
                const FLOAT4 loaded = LOAD_src(row + CLAMPED(ix, w));
                value[c] = row_inside && INSIDE(ix, w) ? loaded : SPLAT(0.0f);
            }
            UNROLL for (int kx = 0; kx < KW; ++kx) {
                FETCH_WEIGHTS(weight_at + kx * VECTORS * 4);
                const int ahead = kx;
                INCLUDE vector_products
            }
            weight_at += KW * VECTORS * 4;
            FOLD(KW)
        }
    }
    INCLUDE window_store
}
