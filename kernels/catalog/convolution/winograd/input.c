// One channel of one tile a work-item, or with WIDE one stack: ALPHA x ALPHA values in, as many out;
// dst [position][in stack][picture][tile].
// TRANSFORM_INPUT is written by `matrices.py` for the tile's size.
{
    INCLUDE numbers
    if (tile >= tiles_x * tiles_y) return;
    const int stack = GROUP_ID(1);
    const int picture = GROUP_ID(2);
    const int ty = tile / tiles_x;
    const int top = (ty + tile_row0) * TILE - pad_t;
    const int left = (tile - ty * tiles_x) * TILE - pad_l;
    const int plane = (picture * src_stacks + src_stack0 + first_stack + stack) * h;
    const int tiles = tiles_x * tiles_y * pictures;
    const int place = (stack * tiles + picture * tiles_x * tiles_y + tile) * LANES_APART + lane;
    const int step = in_stacks * tiles * LANES_APART;

    NUMBER t[POSITIONS];
    UNROLL for (int x = 0; x < ALPHA; ++x) {
        NUMBER d[ALPHA];
        UNROLL for (int y = 0; y < ALPHA; ++y) {
            d[y] = NOTHING;
            if (INSIDE(top + y, h) && INSIDE(left + x, w)) {
                d[y] = LOAD_src(((plane + PLACE(top + y, h)) * w + PLACE(left + x, w)) * LANES_APART + lane);
            }
        }
        TRANSFORM(INPUT, t[@ * ALPHA + x], d[#])
    }
    UNROLL for (int y = 0; y < ALPHA; ++y) {
        TRANSFORM_STORE(INPUT, STORE_dst(place + (y * ALPHA + @) * step, $), t[y * ALPHA + #])
    }
}
