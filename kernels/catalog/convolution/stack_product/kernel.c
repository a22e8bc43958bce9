// Matrix product over flat pixels, as `implicit_gemm` does it, for each of several matrices: GROUP_ID(2) is a picture of a 1x1
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
    RAW4 next_src[LOADS_SRC];  // as it lies in memory: converting it would wait for it
    RAW4 next_weight[LOADS_WEIGHT];
    int weight_at = picture * weight_batch + (channel_tile * stages + part) * HALF_WEIGHT + me;
    INCLUDE tiled_pipeline
}
