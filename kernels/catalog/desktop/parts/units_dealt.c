    // Both operands lie in memory as a subgroup's work-items have them: 16 bytes a matrix, STEPS - 1 steps ahead of the products.
    // There is no barrier. The depth is a multiple of STEPS matrices.
    NEAR near_left[FR * STEPS];
    NEAR near[FC * STEPS];
    int from_left[FR];
    int from_right[FC];
    UNROLL for (int r = 0; r < FR; ++r) from_left[r] = FIRST_LEFT(r);
    UNROLL for (int c = 0; c < FC; ++c) from_right[c] = FIRST_RIGHT(c);
    UNROLL for (int s = 0; s < STEPS_AHEAD; ++s) {
        UNROLL for (int r = 0; r < FR; ++r) near_left[s * FR + r] = LOAD_RAW8_a(from_left[r] + s * 32 + LANE);
        UNROLL for (int c = 0; c < FC; ++c) LOAD_NEAR(near[s * FC + c], from_right[c] + s * 32);
    }
    ROLLED for (int round = 0; round < stages; ++round) {
        UNROLL for (int s = 0; s < STEPS; ++s) {
            const int step = IMIN(round * STEPS + s + STEPS_AHEAD, stages * STEPS - 1) * 32;
            UNROLL for (int r = 0; r < FR; ++r) {
                near_left[(s + STEPS_AHEAD) % STEPS * FR + r] = LOAD_RAW8_a(from_left[r] + step + LANE);
            }
            UNROLL for (int c = 0; c < FC; ++c) LOAD_NEAR(near[(s + STEPS_AHEAD) % STEPS * FC + c], from_right[c] + step);
            MATRIX_LEFT lefts[FR];
            UNROLL for (int r = 0; r < FR; ++r) LEFT_NEAR(lefts[r], near_left[s * FR + r]);
            UNROLL for (int c = 0; c < FC; ++c) {
                MATRIX_RIGHT right;
                FRAGMENT(right, near[s * FC + c]);
                UNROLL for (int r = 0; r < FR; ++r) sums[r * FC + c] = MULTIPLY_ADD(lefts[r], right, sums[r * FC + c]);
            }
        }
    }
