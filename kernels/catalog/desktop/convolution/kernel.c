// Implicit matrix product on matrix units: rows are the pixels of all pictures, the depth is (tap, pair of stacks).
// Addresses of the window are computed where they are needed. in_stacks and out_stacks are those of one group.
// Weights: [group][channel tile][stage][8 TILE_COLUMNS8 outputs][TILE_DEPTH inputs], these [tap][pair of stacks][8 inputs]; with four
// sides `fragments` of units/fragments.py.
{
    const int me = LOCAL_ID(0);
    const int group = GROUP_ID(2);
    const int first_stack = group * out_stacks;
    const int channel_tile = group * ((out_stacks + 2 * TILE_COLUMNS8 - 1) / (2 * TILE_COLUMNS8)) + GROUP_ID(1);
    const int pixels = oh * ow;
    const int first_row = GROUP_ID(0) * TILE_ROWS;
    const int in_pairs = (in_stacks + 1) / 2;
    const int stages = (kh * kw * in_pairs + TILE_DEPTH8 - 1) / TILE_DEPTH8;
    const int step_tap = TILE_DEPTH8 / in_pairs;  // from a stage to the next
    const int step_pair = TILE_DEPTH8 - step_tap * in_pairs;
    const int step_y = step_tap / kw;
    const int step_x = step_tap - step_y * kw;
#if SIDES < 4
    int weight_at = channel_tile * stages * VECTORS_B;
#endif
#define FIRST_RIGHT(c) ((channel_tile * (TILE_COLUMNS8 / 2) + across * FC + (c)) * (stages * STEPS + 1) * 32)
#define RIGHT_AT(i) LOAD_RAW8_weight(i)
#define LOOK_HERE true
#define BIAS_OF(column) TO_WIDE4(LOAD_bias(channel_tile * (2 * TILE_COLUMNS8) + (column)))

    int plane[LOADS_A];
    int top[LOADS_A];
    int left[LOADS_A];
    int pair[LOADS_A];
    int ky[LOADS_A];
    int kx[LOADS_A];
    UNROLL for (int f = 0; f < LOADS_A; ++f) {
        const int at = me + f * GROUP;
    INCLUDE place
        const int row = first_row + row_at;
        const int picture = IMIN(row, rows - 1) / pixels;  // where edges are mirrored no pixel is outside
        const int pixel = row - picture * pixels;
        const int oy = pixel / ow;
        top[f] = row < rows && (EVEN_A != 0 || at < VECTORS_A) ? oy * sh - pad_t : -100000;
        left[f] = (pixel - oy * ow) * sw - pad_l;
        plane[f] = (picture * src_stacks + src_stack0 + group * in_stacks) * h * w;
        const int tap = depth_at / in_pairs;
        pair[f] = depth_at - tap * in_pairs;
        ky[f] = tap / kw;
        kx[f] = tap - ky[f] * kw;
    }
    INCLUDE units_pipeline
}
