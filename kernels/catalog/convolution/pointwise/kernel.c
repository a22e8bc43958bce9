// A 1x1 convolution is a matrix product: PIXELS pixels x VECTORS vectors of LANES output channels a work-item.
// GROUP_ID(2) is a picture (weight_batch 0), or a position of Winograd's transformed tiles with weights of its own.
// Weights: [out / (VECTORS * LANES)][in stacks][VECTORS][4 inputs] vectors of LANES outputs.
{
    const int pixel = GLOBAL_ID(0) * PIXELS;
    LEAVE_IF(pixel >= hw);
    const int first = GROUP_ID(1) * STACKS;
    const int picture = GROUP_ID(2);

    WIDEV sums[SUMS];
    UNROLL for (int t = 0; t < VECTORS; ++t) {
        const WIDEV start = TO_WIDEV(LOADV_bias(GROUP_ID(1) * VECTORS + t));
        UNROLL for (int p = 0; p < PIXELS; ++p) sums[p * VECTORS + t] = start;
    }
    CHUNK_SUMS
    int weight_at = picture * weight_batch + GROUP_ID(1) * in_stacks * VECTORS * 4;
    int plane = (picture * src_stacks + src_stack0) * hw;
    IN_CHUNKS(s, in_stacks, 1) {
        FLOAT4 value[PIXELS];
        UNROLL for (int p = 0; p < PIXELS; ++p) value[p] = LOAD_src(plane + IMIN(pixel + p, hw - 1));
        FETCH_WEIGHTS(weight_at);
        INCLUDE vector_products
        weight_at += VECTORS * 4;
        plane += hw;
        FOLD(1)
    }
    FOLD_REST
    UNROLL for (int t = 0; t < VECTORS; ++t) {
        UNROLL for (int part = 0; part < PARTS; ++part) {
            const int stack = first + t * PARTS + part;
            if (!LEFT && stack < out_stacks) {
                UNROLL for (int p = 0; p < PIXELS; ++p) {
                    if (pixel + p < hw) {
                        WIDE4 sum = PART(sums[p * VECTORS + t], part);
                        if (has_residual != 0) {
                            sum += TO_WIDE4(LOAD_residual((picture * residual_stacks + residual_stack0 + stack) * hw + pixel + p));
                        }
                        TRIM(stack == out_stacks - 1, sum)
                        STORE_dst((picture * dst_stacks + dst_stack0 + stack) * hw + pixel + p, ACTIVATE(sum));
                    }
                }
            }
        }
    }
}
