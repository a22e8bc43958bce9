            UNROLL for (int k = 0; k < TILE_DEPTH; ++k) {
                FLOAT4 left[RV];
                FLOAT4 right[CV];
                UNROLL for (int r = 0; r < RV; ++r) left[r] = tile_a[a_at + k * PITCH + r * GY];
                UNROLL for (int c = 0; c < CV; ++c) right[c] = tile_b[b_at + k * TILE_COLUMNS4 + c * GX];
                UNROLL for (int r = 0; r < RV; ++r) {
                    UNROLL for (int c = 0; c < CV; ++c) {
                        chunk[(r * 4 + 0) * CV + c] = MAD(SPLAT(left[r].x), right[c], chunk[(r * 4 + 0) * CV + c]);
                        chunk[(r * 4 + 1) * CV + c] = MAD(SPLAT(left[r].y), right[c], chunk[(r * 4 + 1) * CV + c]);
                        chunk[(r * 4 + 2) * CV + c] = MAD(SPLAT(left[r].z), right[c], chunk[(r * 4 + 2) * CV + c]);
                        chunk[(r * 4 + 3) * CV + c] = MAD(SPLAT(left[r].w), right[c], chunk[(r * 4 + 3) * CV + c]);
                    }
                }
            }
            FOLD(DEPTH)
