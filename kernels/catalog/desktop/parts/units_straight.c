    // Neither operand passes through local memory, and there are no barriers: of 32 along the depth a work-item has of its
    // rows eight that lie side by side, which both operands name in the same order (`straightened` in units/fragments.py). With
    // two such CHUNKS a stage they are read one ahead; PARTS take turns at them.
    RAW8 near_left[FR * STEPS];
    NEAR near[FC * STEPS];
    int from_left[2 * FR];
    int from_right[FC];
    UNROLL for (int r = 0; r < FR; ++r) {
        const int row = first_row + (down * FR + r) * UNIT_ROWS + LANE / 4;
        from_left[2 * r] = a_from + (WHOLE != 0 ? row : IMIN(row, rows - 1)) * a_stride + 2 * (LANE % 4);
        from_left[2 * r + 1] = a_from + (WHOLE != 0 ? row + 8 : IMIN(row + 8, rows - 1)) * a_stride + 2 * (LANE % 4);
    }
    UNROLL for (int c = 0; c < FC; ++c) from_right[c] = FIRST_RIGHT(c);
#ifdef NORMALISED
    MATRIX_SUM totals[FR];
    MATRIX_SUM squares[FR];
    MATRIX_RIGHT ones;
    FRAGMENT(ones, RAW8_OF(0x3c003c00u, 0x3c003c00u, 0x3c003c00u, 0x3c003c00u));
    UNROLL for (int r = 0; r < FR; ++r) totals[r] = NO_SUM;
    UNROLL for (int r = 0; r < FR; ++r) squares[r] = NO_SUM;
#endif
#if LOOK
    UNROLL for (int r = 0; r < TWICE_ROWS; ++r) near_left[r] = LEFT_AT(from_left[r] + part * 8);
    UNROLL for (int h = 0; h < 2; ++h) {
        UNROLL for (int c = 0; c < FC; ++c) LOAD_NEAR(near[h * FC + c], from_right[c] + part * 64 + h * 32);
    }
#endif
    for (int round = 0; round < stages; ++round) {
        UNROLL for (int s = 0; s < CHUNKS; ++s) {
            const int chunk = IMIN(round * CHUNKS + s + LOOK, stages * CHUNKS - 1) * PARTS + part;
            UNROLL for (int r = 0; r < TWICE_ROWS; ++r) {
                near_left[(s + LOOK) % CHUNKS * TWICE_ROWS + r] = LEFT_AT(from_left[r] + chunk * 8);
            }
            UNROLL for (int h = 0; h < 2; ++h) {
                UNROLL for (int c = 0; c < FC; ++c) {
                    LOAD_NEAR(near[(s + LOOK) % CHUNKS * TWICE_COLUMNS + h * FC + c], from_right[c] + chunk * 64 + h * 32);
                }
            }
            MATRIX_LEFT lefts[TWICE_ROWS];
            UNROLL for (int r = 0; r < FR; ++r) {
                const RAW8 up = near_left[s % CHUNKS * TWICE_ROWS + 2 * r];
                const RAW8 low = near_left[s % CHUNKS * TWICE_ROWS + 2 * r + 1];
                LEFT_OF(lefts[r], up.x, low.x, up.y, low.y);
                LEFT_OF(lefts[FR + r], up.z, low.z, up.w, low.w);
#ifdef NORMALISED
                MATRIX_RIGHT turned;
                FRAGMENT(turned, RAW8_OF(up.x, up.y, low.x, low.y));
                squares[r] = MULTIPLY_ADD(lefts[r], turned, squares[r]);
                totals[r] = MULTIPLY_ADD(lefts[r], ones, totals[r]);
                FRAGMENT(turned, RAW8_OF(up.z, up.w, low.z, low.w));
                squares[r] = MULTIPLY_ADD(lefts[FR + r], turned, squares[r]);
                totals[r] = MULTIPLY_ADD(lefts[FR + r], ones, totals[r]);
#endif
            }
            UNROLL for (int h = 0; h < 2; ++h) {
                UNROLL for (int c = 0; c < FC; ++c) {
                    MATRIX_RIGHT right;
                    FRAGMENT(right, near[s % CHUNKS * TWICE_COLUMNS + h * FC + c]);
                    UNROLL for (int r = 0; r < FR; ++r) {
                        sums[r * FC + c] = MULTIPLY_ADD(lefts[h * FR + r], right, sums[r * FC + c]);
                    }
                }
            }
        }
    }
#ifdef NORMALISED
    INCLUDE row_statistics
#endif
