// A depthwise convolution within the 1x1 convolution behind it: as `implicit_gemm` does it, but a value of the source is a window
// of the depthwise one's source, summed up where it is fetched. Each tile of channels computes it anew.
// Weights: [channel tile][in stack, padded to whole stages][4 inputs][TILE_VECTORS] vectors of four outputs; those of the
// depthwise one: [stacks][KH][KW] vectors of four channels, or, where it is a gate, [pictures][stacks] of the network's.
// TAKES: it reads the channels that a table names for each stack, in place of a window; those below 0 are 0.
#define COMPUTED_SRC 1
#define TAKEN(plane, c) ((c) < 0 ? 0.0f : LOAD_src((plane + IMAX(c, 0) / 4 * area) * 4 + IMAX(c, 0) % 4))
{
    const int part = LOCAL_ID(0) / GROUP;  // of the sum: SPLIT parts of a work-group take turns at the stages
    const int me = LOCAL_ID(0) % GROUP;
    const int tx = me % TX;
    const int ty = me / TX;
    const int first_stack = 0;
    const int channel_tile = GROUP_ID(1);
    const int area = oh * ow;
    const int pixels = pictures * area;
    const int first_pixel = GROUP_ID(0) * TILE_PIXELS;

    int plane[PIXEL_SLOTS];
    int gate[PIXEL_SLOTS];
    int top[PIXEL_SLOTS];
    int left[PIXEL_SLOTS];
    UNROLL for (int i = 0; i < PIXEL_SLOTS; ++i) {
        const int pixel = IMIN(first_pixel + me % TILE_PIXELS + i * GROUP, pixels - 1);
        const int picture = pixel / area;
#ifdef TAKES
        plane[i] = (picture * src_stacks + src_stack0) * area + pixel - picture * area;
#else
        plane[i] = (picture * src_stacks + src_stack0) * h * w;
        const int oy = (pixel - picture * area) / ow;
        gate[i] = picture * inner_stacks + inner_stack0;
        top[i] = oy * sh - pad_t;
        left[i] = (pixel - picture * area - oy * ow) * sw - pad_l;
#endif
    }
    INCLUDE tiled_sums
    FLOAT4 next_src[LOADS_SRC];
    RAW4 next_weight[LOADS_WEIGHT];
    int weight_at = (channel_tile * stages + part) * HALF_WEIGHT + me;
    INCLUDE tiled_pipeline
}
