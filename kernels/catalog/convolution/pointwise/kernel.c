// A 1x1 convolution is a matrix product: PIXELS pixels x VECTORS vectors of LANES output channels a work-item.
// GROUP_ID(2) is a picture (weight_batch 0), or a position of Winograd's transformed tiles with weights of its own.
// Weights: [out / (VECTORS * LANES)][in stacks][VECTORS][4 inputs] vectors of LANES outputs.
{
    const int oh = 1, ow = hw, oy = 0, ahead = 0;  // a picture is one row
    const int ox = GLOBAL_ID(0) * PIXELS;
    LEAVE_IF(ox >= hw);
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
        UNROLL for (int p = 0; p < PIXELS; ++p) value[p] = LOAD_src(plane + IMIN(ox + p, hw - 1));
        FETCH_WEIGHTS(weight_at);
        INCLUDE vector_products
        weight_at += VECTORS * 4;
        plane += hw;
        FOLD(1)
    }
    INCLUDE window_store
}
