// Implicit matrix product: a work-group computes TILE_PIXELS pixels x TILE_VECTORS vectors of four output channels.
// Both operands pass through local memory, DEPTH (tap, stack) pairs a stage, in two sides that alternate: while one is
// read the other is filled, with one barrier a stage. Addresses of the window are computed where they are needed.
// Pixels are those of all pictures, one after the other. Groups of channels are computed side by side; in_stacks and out_stacks
// are those of one group. Where the depth is divided, each division of `stages` stages has results of its own.
// Weights: [group][channel tile][tap][in stack], padded to whole stages, then [4 inputs][TILE_VECTORS] vectors of four outputs.
{
    const int part = LOCAL_ID(0) / GROUP;  // of the sum: SPLIT parts of a work-group take turns at the stages
    const int me = LOCAL_ID(0) % GROUP;
    const int tx = me % TX;
    const int ty = me / TX;
    const int division = GROUP_ID(2) / groups;
    const int group = GROUP_ID(2) - division * groups;
    const int first_stack = group * out_stacks;
    const int channel_tile = group * ((out_stacks + TILE_VECTORS - 1) / TILE_VECTORS) + GROUP_ID(1);
    const int area = oh * ow;
    const int pixels = pictures * area;
    const int first_pixel = GROUP_ID(0) * TILE_PIXELS;

    int plane[PIXEL_SLOTS];
    int top[PIXEL_SLOTS];
    int left[PIXEL_SLOTS];
    UNROLL for (int i = 0; i < PIXEL_SLOTS; ++i) {
        const int pixel = first_pixel + me % TILE_PIXELS + i * GROUP;
        const int picture = IMIN(pixel, pixels - 1) / area;  // where edges are mirrored no pixel is outside
        const int oy = (pixel - picture * area) / ow;
        plane[i] = (picture * src_stacks + src_stack0 + group * in_stacks) * h * w;
        top[i] = pixel < pixels ? oy * sh - pad_t : -100000;
        left[i] = (pixel - picture * area - oy * ow) * sw - pad_l;
    }
    int stack[STACK_SLOTS];
    int ky[STACK_SLOTS];
    int kx[STACK_SLOTS];
    UNROLL for (int j = 0; j < STACK_SLOTS; ++j) {
        const int at = (division * stages + part) * DEPTH + me / TILE_PIXELS + j * STACK_STEP;
        const int tap = at / in_stacks;
        stack[j] = at - tap * in_stacks;
        ky[j] = tap / kw;
        kx[j] = tap - ky[j] * kw;
    }
    INCLUDE tiled_sums
    RAW4 next_src[LOADS_SRC];  // as it lies in memory: converting it would wait for it
    RAW4 next_weight[LOADS_WEIGHT];
    int weight_at = ((channel_tile * divisions + division) * stages + part) * HALF_WEIGHT + me;
    INCLUDE tiled_pipeline
}
