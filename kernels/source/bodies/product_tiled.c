// Matrix product over flat pixels, as `conv_tiled` does it, for each of several matrices: GROUP_ID(2) is a picture of a 1x1
// convolution (weight_batch 0), or a position of Winograd's transformed tiles with weights of its own.
// Weights: [matrix][channel tile][in stack, padded to whole stages][4 inputs][TILE_VECTORS] vectors of four outputs.
{
    const int part = LOCAL_ID(0) / GROUP;  // of the sum: SPLIT parts of a work-group take turns at the stages
    const int me = LOCAL_ID(0) % GROUP;
    const int tx = me % TX;
    const int ty = me / TX;
    const int picture = GROUP_ID(2);
    const int first_stack = 0;
    const int channel_tile = GROUP_ID(1);
    const int first_pixel = GROUP_ID(0) * TILE_PIXELS;
    const int plane = (picture * src_stacks + src_stack0) * pixels;

    INCLUDE tiled_sums
    FLOAT4 next_src[LOADS_SRC];
    FLOAT4 next_weight[LOADS_WEIGHT];
    int weight_at = picture * weight_batch + (channel_tile * stages + part) * HALF_WEIGHT + me;
    const int rounds = (stages + SPLIT - 1) / SPLIT;
#if AHEAD
    {
        const int stage = part;
    INCLUDE tiled_fetch_plane
        const int side = part * 2;
    INCLUDE tiled_put
    }
    BARRIER;
    for (int round = 0; round < rounds; ++round) {
        {
            const int stage = (round + 1) * SPLIT + part;  // beyond the last one nothing is read
    INCLUDE tiled_fetch_plane
        }
        {
            const int side = part * 2 + round % 2;
    INCLUDE tiled_stage
        }
        const int side = part * 2 + (round + 1) % 2;
    INCLUDE tiled_put
        BARRIER;
    }
#else
    for (int round = 0; round <= rounds; ++round) {
        if (round < rounds) {
            const int stage = round * SPLIT + part;
    INCLUDE tiled_fetch_plane
        }
        if (round > 0) {
            const int side = part * 2 + (round - 1) % 2;
    INCLUDE tiled_stage
        }
        if (round < rounds) {
            const int side = part * 2 + round % 2;
    INCLUDE tiled_put
        }
        BARRIER;
    }
#endif
    INCLUDE tiled_sum_up
    INCLUDE tiled_store
}
