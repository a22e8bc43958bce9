            UNROLL for (int s = 0; s < STEPS; ++s) {
                MATRIX_LEFT left[FR];
                MATRIX_RIGHT right[FC];
                UNROLL for (int r = 0; r < FR; ++r) {
                    LOAD_LEFT(left[r], tile, from_a + r * UNIT_ROWS * PITCH_A + s * UNIT_DEPTH / 8, PITCH_A);
                }
                UNROLL for (int c = 0; c < FC; ++c) {
                    LOAD_RIGHT(right[c], tile, from_b + s * RIGHT_DEPTH + c * RIGHT_COLUMNS, PITCH_B);
                }
                UNROLL for (int r = 0; r < FR; ++r) {
                    UNROLL for (int c = 0; c < FC; ++c) {
                        sums[r * FC + c] = MULTIPLY_ADD(left[r], right[c], sums[r * FC + c]);
                    }
                }
            }
