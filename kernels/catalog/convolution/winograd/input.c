// One channel of one tile a work-item, or with WIDE one stack: ALPHA x ALPHA values in, as many out;
// dst [position][in stack][picture][tile]. With PARTS the window is cut into so many parts in each direction; each has
// all in stacks of its own, and looks at the input from its own place.
// TRANSFORM_INPUT is written by `matrices.py` for the tile's size.
{
    INCLUDE numbers
    if (tile >= tiles_x * tiles_y) return;
    const int stack = GROUP_ID(1);
    const int picture = GROUP_ID(2);
    const int ty = tile / tiles_x;
#ifdef PARTS
    const int sources = in_stacks / (PARTS * PARTS);
    const int part = stack / sources;
    const int source = stack - part * sources;
    const int top = (ty + tile_row0) * TILE - pad_t + part / PARTS * (ALPHA - TILE + 1);
    const int left = (tile - ty * tiles_x) * TILE - pad_l + part % PARTS * (ALPHA - TILE + 1);
#else
    const int source = stack;
    const int top = (ty + tile_row0) * TILE - pad_t;
    const int left = (tile - ty * tiles_x) * TILE - pad_l;
#endif
    const int plane = (picture * src_stacks + src_stack0 + first_stack + source) * h;
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
