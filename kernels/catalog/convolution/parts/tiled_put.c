            // SQUARE: each channel's pixels side by side, else each pixel's channels
            UNROLL for (int j = 0; j < STACK_SLOTS; ++j) {
                UNROLL for (int i = 0; i < PIXEL_SLOTS; ++i) {
                    const int at = me % TILE_PIXELS + i * GROUP;
                    const int row = side * HALF_SRC + (me / TILE_PIXELS + j * STACK_STEP) * TILE_PIXELS;
#ifdef COMPUTED_SRC
                    const FLOAT4 put = next_src[j * PIXEL_SLOTS + i];
#else
                    const FLOAT4 put = FROM_RAW(next_src[j * PIXEL_SLOTS + i]);
#endif
#if SQUARE
                    SET_LANE(tile_src, row + at / 4, at % 4, put.x);
                    SET_LANE(tile_src, row + TILE_PIXELS / 4 + at / 4, at % 4, put.y);
                    SET_LANE(tile_src, row + TILE_PIXELS / 2 + at / 4, at % 4, put.z);
                    SET_LANE(tile_src, row + TILE_PIXELS / 4 * 3 + at / 4, at % 4, put.w);
#else
                    tile_src[row + at] = put;
#endif
                }
            }
            UNROLL for (int j = 0; j < LOADS_WEIGHT; ++j) {
                const int at = me + j * GROUP;
                if (at < HALF_WEIGHT) tile_weight[side * HALF_WEIGHT + at] = FROM_RAW(next_weight[j]);
            }
