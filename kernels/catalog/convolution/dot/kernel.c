// One work-item: OUTPUTS channels, `apart` from each other, of PIXELS adjacent outputs of a row; each is a sum of products
// of four input channels. Weights: [apart * OUTPUTS channels][in stacks][kh][kw] vectors of four inputs.
{
    const int blocks = (ow + PIXELS - 1) / PIXELS;
    const int block = GLOBAL_ID(0);
    if (block >= blocks * oh) return;
    const int oy = block / blocks;
    const int ox = (block - oy * blocks) * PIXELS;
    const int first = GROUP_ID(1);
    const int picture = GROUP_ID(2);
    const int per_channel = in_stacks * kh * kw;
    float sums[SUMS];
    UNROLL for (int i = 0; i < OUTPUTS; ++i) {
        UNROLL for (int p = 0; p < PIXELS; ++p) sums[p * OUTPUTS + i] = LOAD_bias(first + i * apart);
    }
    int tap = 0;
    for (int s = 0; s < in_stacks; ++s) {
        const int plane = (picture * src_stacks + src_stack0 + s) * h;
        for (int ky = 0; ky < kh; ++ky) {
            const int iy = oy * sh - pad_t + ky * dh;
            const bool row_inside = INSIDE(iy, h);
            const int row = (plane + CLAMPED(iy, h)) * w;
            for (int kx = 0; kx < kw; ++kx) {
                FLOAT4 value[PIXELS];
                UNROLL for (int p = 0; p < PIXELS; ++p) {
                    const int ix = (ox + p) * sw - pad_l + kx * dw;
                    const FLOAT4 loaded = LOAD_src(row + CLAMPED(ix, w));
                    value[p] = row_inside && INSIDE(ix, w) ? loaded : SPLAT(0.0f);
                }
                UNROLL for (int i = 0; i < OUTPUTS; ++i) {
                    const FLOAT4 weights = LOAD_weight((first + i * apart) * per_channel + tap);
                    UNROLL for (int p = 0; p < PIXELS; ++p) {
                        float sum = sums[p * OUTPUTS + i];
                        sum = MAD(value[p].x, weights.x, sum);
                        sum = MAD(value[p].y, weights.y, sum);
                        sum = MAD(value[p].z, weights.z, sum);
                        sums[p * OUTPUTS + i] = MAD(value[p].w, weights.w, sum);
                    }
                }
                ++tap;
            }
        }
    }
    UNROLL for (int i = 0; i < OUTPUTS; ++i) {
        const int channel = first + i * apart;
        if (channel < lanes) {
            UNROLL for (int p = 0; p < PIXELS; ++p) {
                if (ox + p < ow) {
                    const int pixel = oy * ow + ox + p;
                    float sum = sums[p * OUTPUTS + i];
                    if (has_residual != 0) {
                        sum += LOAD_residual(((picture * residual_stacks + residual_stack0 + channel / 4) * oh * ow + pixel) * 4 + channel % 4);
                    }
                    const int to = ((picture * dst_stacks + dst_stack0 + channel / 4) * oh * ow + pixel) * 4 + channel % 4;
                    STORE_dst(to, channel < channels ? ACTIVATE1(sum) : 0.0f);
                }
            }
        }
    }
}
