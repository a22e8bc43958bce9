            UNROLL for (int f = 0; f < FETCHES; ++f) {
                from[f] += me + f * GROUP < FETCHES_A ? DEPTH : TILE_DEPTH * b_stride;
                fetch_k[f] += TILE_DEPTH;
            }
