        UNROLL for (int f = 0; f < FETCHES; ++f) {
            const int square = me + f * GROUP;
            if (square < FETCHES_A) {
                const int at = fill * HALF_A + to[f];
                tile_a[at] = VEC4(next[f * 4].x, next[f * 4 + 1].x, next[f * 4 + 2].x, next[f * 4 + 3].x);
                tile_a[at + PITCH] = VEC4(next[f * 4].y, next[f * 4 + 1].y, next[f * 4 + 2].y, next[f * 4 + 3].y);
                tile_a[at + 2 * PITCH] = VEC4(next[f * 4].z, next[f * 4 + 1].z, next[f * 4 + 2].z, next[f * 4 + 3].z);
                tile_a[at + 3 * PITCH] = VEC4(next[f * 4].w, next[f * 4 + 1].w, next[f * 4 + 2].w, next[f * 4 + 3].w);
            } else if (square < FETCHES_ALL) {
                UNROLL for (int j = 0; j < 4; ++j) {
                    tile_b[fill * HALF_B + to[f] + j * TILE_COLUMNS4] = next[f * 4 + j];
                }
            }
        }
