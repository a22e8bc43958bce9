// A window of KW adjacent columns, stride 1: each row of the source is loaded once for all of them.
// One work-item: PIXELS adjacent outputs of a row x VECTORS vectors of LANES output channels.
// Weights: [out / (VECTORS * LANES)][in stacks][kh][KW][VECTORS][4 inputs] vectors of LANES outputs.
{
    const int blocks = (ow + PIXELS - 1) / PIXELS;
    const int block = GLOBAL_ID(0);
    LEAVE_IF(block >= blocks * oh);
    const int oy = block / blocks;
    const int ox = (block - oy * blocks) * PIXELS;
    const int first = GROUP_ID(1) * STACKS;
    const int picture = GROUP_ID(2);
    const int in_first = src_stack0 + (first / group_stacks) * in_stacks;

    WIDEV sums[SUMS];
    UNROLL for (int t = 0; t < VECTORS; ++t) {
        const WIDEV start = TO_WIDEV(LOADV_bias(GROUP_ID(1) * VECTORS + t));
        UNROLL for (int p = 0; p < PIXELS; ++p) sums[p * VECTORS + t] = start;
    }
    CHUNK_SUMS
    int weight_at = GROUP_ID(1) * in_stacks * kh * KW * VECTORS * 4;
    for (int s = 0; s < in_stacks; ++s) {
        const int plane = (picture * src_stacks + in_first + s) * h * w;
        for (int ky = 0; ky < kh; ++ky) {
            const int iy = oy * sh - pad_t + ky * dh;
            const bool row_inside = INSIDE(iy, h);
            const int row = plane + CLAMPED(iy, h) * w;
            const int image_row = (picture * src_stacks + in_first + s) * h + CLAMPED(iy, h);
            FLOAT4 value[COLUMNS];
            UNROLL for (int c = 0; c < COLUMNS; ++c) {
                const int ix = ox - pad_l + c;
                const FLOAT4 loaded = LOAD_src_AT(row + CLAMPED(ix, w), CLAMPED(ix, w), image_row);
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
    FOLD_REST
    UNROLL for (int t = 0; t < VECTORS; ++t) {
        UNROLL for (int part = 0; part < PARTS; ++part) {
            const int stack = first + t * PARTS + part;
            if (!LEFT && stack < out_stacks) {
                UNROLL for (int p = 0; p < PIXELS; ++p) {
                    if (ox + p < ow) {
                        const int pixel = oy * ow + ox + p;
                        WIDE4 sum = PART(sums[p * VECTORS + t], part);
                        if (has_residual != 0) {
                            sum += TO_WIDE4(LOAD_residual((picture * residual_stacks + residual_stack0 + stack) * oh * ow + pixel));
                        }
                        TRIM(stack == out_stacks - 1, sum)
                        const int plane = picture * dst_stacks + dst_stack0 + stack;
                        STORE_dst_AT(plane * oh * ow + pixel, ox + p, plane * oh + oy, ACTIVATE(sum));
                    }
                }
            }
        }
    }
}
