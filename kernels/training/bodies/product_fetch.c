            UNROLL for (int f = 0; f < FETCHES_A; ++f) {
                const int square = me + f * TEAM;
                UNROLL for (int j = 0; j < 4; ++j) next_a[f * 4 + j] = SPLAT(0.0f);
#if A_WAY % 2 == 0
                const int k = from + 4 * (square % DEPTH);
                const int row4 = first_row4 + square / DEPTH;
#else
                const int k = from + 4 * (square / TILE_ROWS4);
                const int row4 = first_row4 + square % TILE_ROWS4;
#endif
                if (square < SQUARES_A && k < end && 4 * row4 < rows) {
#if A_WAY == 0
                    UNROLL for (int j = 0; j < 4; ++j) next_a[f * 4 + j] = LOAD_a(IMIN(4 * row4 + j, rows - 1) * a_stride + k / 4);
#elif A_WAY == 1
                    UNROLL for (int j = 0; j < 4; ++j) next_a[f * 4 + j] = LOAD_a((k + j) * a_stride + row4);
#else
#if A_WAY == 2
                    const int place = k;
                    const int first_pixel = 4 * row4;
#else
                    const int place = 4 * row4;
                    const int first_pixel = k;
#endif
                    const int tap = place / CHANNELS;
                    const int across = tap % KW * DW - PAD_L;
                    const int down = tap / KW * DH - PAD_T;
                    const int channel4 = place % CHANNELS / 4;
                    UNROLL for (int j = 0; j < 4; ++j) {
                        const int pixel = first_pixel + j;
                        const int x = pixel % OW * SW + across;
                        const int y = pixel / OW % OH * SH + down;
                        if (x >= 0 && x < IMAGE_W && y >= 0 && y < IMAGE_H) {
                            next_a[f * 4 + j] = LOAD_a(((pixel / OW / OH * IMAGE_H + y) * IMAGE_W + x) * a_stride + channel4);
                        }
                    }
#endif
                }
            }
            UNROLL for (int f = 0; f < FETCHES_B; ++f) {
                const int square = me + f * TEAM;
                UNROLL for (int j = 0; j < 4; ++j) next_b[f * 4 + j] = SPLAT(0.0f);
#if B_WAY > 0
                const int k = from + 4 * (square % DEPTH);
                const int column4 = first_column4 + square / DEPTH;
#else
                const int k = from + 4 * (square / TILE_COLUMNS4);
                const int column4 = first_column4 + square % TILE_COLUMNS4;
#endif
                if (square < SQUARES_B && k < end && column4 < columns4) {
#if B_WAY == 0
                    UNROLL for (int j = 0; j < 4; ++j) next_b[f * 4 + j] = LOAD_b((k + j) * b_stride + column4);
#elif B_WAY == 1
                    UNROLL for (int j = 0; j < 4; ++j) next_b[f * 4 + j] = LOAD_b((4 * column4 + j) * b_stride + k / 4);
#else
                    const int row = (TAPS - 1 - k / CHANNELS) * 4 * columns4 + 4 * column4;
                    UNROLL for (int j = 0; j < 4; ++j) next_b[f * 4 + j] = LOAD_b((row + j) * b_stride + k % CHANNELS / 4);
#endif
                }
            }
