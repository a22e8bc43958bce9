// One channel of one tile a work-item, or with WIDE one stack: ALPHA x ALPHA sums in, TILE x TILE outputs;
// src [position][out stack][picture][tile].
{
    INCLUDE numbers
    if (tile >= tiles_x * tiles_y) return;
    const int stack = GROUP_ID(1);
    const int picture = GROUP_ID(2);
    const int ty = tile / tiles_x;
    const int top = (ty + tile_row0) * TILE;
    const int left = (tile - ty * tiles_x) * TILE;
    const int tiles = tiles_x * tiles_y * pictures;
    const int place = (stack * tiles + picture * tiles_x * tiles_y + tile) * LANES_APART + lane;
    const int step = out_stacks * tiles * LANES_APART;
    const NUMBER start = LOAD_bias(stack * LANES_APART + lane);

    NUMBER t[HALF_POSITIONS];
    UNROLL for (int x = 0; x < ALPHA; ++x) {
        NUMBER m[ALPHA];
        UNROLL for (int y = 0; y < ALPHA; ++y) m[y] = LOAD_src(place + (y * ALPHA + x) * step);
        TRANSFORM(OUTPUT, t[@ * ALPHA + x], m[#])
    }
    UNROLL for (int y = 0; y < TILE; ++y) {
        NUMBER r[TILE];
        TRANSFORM(OUTPUT, r[@], t[y * ALPHA + #])
        UNROLL for (int x = 0; x < TILE; ++x) {
            if (top + y < oh && left + x < ow) {
                const int pixel = (top + y) * ow + left + x;
                NUMBER sum = r[x] + start;
                if (has_residual != 0) {
                    sum += LOAD_residual(((picture * residual_stacks + residual_stack0 + stack) * oh * ow + pixel) * LANES_APART + lane);
                }
                TRIM_NUMBER(stack == out_stacks - 1, sum)
                STORE_dst(((picture * dst_stacks + dst_stack0 + stack) * oh * ow + pixel) * LANES_APART + lane, ACTIVATE_NUMBER(sum));
            }
        }
    }
}
