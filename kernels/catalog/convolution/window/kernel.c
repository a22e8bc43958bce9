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
            const int iy = oy * sh - pad_t + ky * dh;
            const bool row_inside = INSIDE(iy, h);
            const int row = plane + CLAMPED(iy, h) * w;
            FLOAT4 value[COLUMNS];
            UNROLL for (int c = 0; c < COLUMNS; ++c) {
                const int ix = ox - pad_l + c;
                const FLOAT4 loaded = LOAD_src(row + CLAMPED(ix, w));
                value[c] = row_inside && INSIDE(ix, w) ? loaded : SPLAT(0.0f);
            }
            UNROLL for (int kx = 0; kx < KW; ++kx) {
                FETCH_WEIGHTS(weight_at + kx * VECTORS * 4);
                UNROLL for (int t = 0; t < VECTORS; ++t) {
                    const VECTOR w0 = WEIGHT(t * 4);
                    const VECTOR w1 = WEIGHT(t * 4 + 1);
                    const VECTOR w2 = WEIGHT(t * 4 + 2);
                    const VECTOR w3 = WEIGHT(t * 4 + 3);
                    UNROLL for (int p = 0; p < PIXELS; ++p) {
                        VECTOR sum = chunk[p * VECTORS + t];
                        sum = MAD(VSPLAT(value[p + kx].x), w0, sum);
                        sum = MAD(VSPLAT(value[p + kx].y), w1, sum);
                        sum = MAD(VSPLAT(value[p + kx].z), w2, sum);
                        chunk[p * VECTORS + t] = MAD(VSPLAT(value[p + kx].w), w3, sum);
                    }
                }
            }
            weight_at += KW * VECTORS * 4;
            FOLD(KW)
        }
    }
    INCLUDE window_store
}
