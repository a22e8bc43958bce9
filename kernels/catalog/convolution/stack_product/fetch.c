            UNROLL for (int j = 0; j < STACK_SLOTS; ++j) {
                const int from = stage * DEPTH + me / TILE_PIXELS + j * STACK_STEP;
                UNROLL for (int i = 0; i < PIXEL_SLOTS; ++i) {
                    const int pixel = first_pixel + me % TILE_PIXELS + i * GROUP;
                    next_src[j * PIXEL_SLOTS + i] = RAW_ZERO;
                    if (pixel < pixels && from < in_stacks) {
                        next_src[j * PIXEL_SLOTS + i] = LOAD_RAW_src(plane + from * pixels + pixel);
                    }
                }
            }
            UNROLL for (int j = 0; j < LOADS_WEIGHT; ++j) {
                next_weight[j] = RAW_ZERO;
                if (me + j * GROUP < HALF_WEIGHT && stage < stages) next_weight[j] = LOAD_RAW_weight(weight_at + j * GROUP);
            }
            weight_at += HALF_WEIGHT * SPLIT;
