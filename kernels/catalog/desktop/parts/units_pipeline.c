    // Both operands pass through local memory, TILE_DEPTH deep a stage, while the next stage is fetched. With two SIDES
    // one is read while the other is filled, with one barrier a stage; with three there are two, and the matrices of the next
    // step are read before this one is multiplied; with four the right operand is read from memory as a subgroup's matrices have
    // it, a step ahead, and two sides are the left one's; with five and six neither passes through it. DOWN x ACROSS subgroups multiply FR x FC matrices
    // each, STEPS times a stage; PARTS such sets share out the depth. TURNED: the right operand lies by columns.
    MATRIX_SUM sums[SUMS];
#if !IN_REGISTERS
    UNROLL for (int i = 0; i < SUMS; ++i) sums[i] = NO_SUM;
#endif
#if SIDES < 5
    RAW8 next_a[LOADS_A];
#endif
#if SIDES < 4
    RAW8 next_b[LOADS_B];
#endif
    const int part = SUBGROUP / (DOWN * ACROSS);
    const int down = SUBGROUP / ACROSS % DOWN;
    const int across = SUBGROUP % ACROSS;
#ifdef PAIRED
#define COLUMN_OF(c) ((c) / 2 * 8 + LANE % 4 * 2 + (c) % 2)
#define UP_AT(c) ((c) / 2 * 4 + (c) % 2)
#define LOW_AT(c) (UP_AT(c) + 2)
#else
#define COLUMN_OF(c) ((c) * 4 + LANE % 4)
#define UP_AT(c) (2 * (c))
#define LOW_AT(c) (2 * (c) + 1)
#endif
#if IN_REGISTERS
    UNROLL for (int c = 0; c < FC; ++c) {
        const WIDE4 four = BIAS_OF(across * (FC * 4) + COLUMN_OF(c));
        UNROLL for (int r = 0; r < FR; ++r) FILL_SUM(sums[r * FC + c], four);
    }
#endif
    const int start_a = down * FR * UNIT_ROWS * PITCH_A + part * STEPS * UNIT_DEPTH / 8;
    const int start_b = START_B + across * FC * RIGHT_COLUMNS + part * STEPS * RIGHT_DEPTH;
#if SIDES < 5
    {
        const int side = 0;
        const int stage = 0;
    INCLUDE fetch
    INCLUDE units_put
    }
    BARRIER;
#endif
#if SIDES > 4
#if SIDES > 5
    INCLUDE units_dealt
#else
    INCLUDE units_straight
#endif
#ifdef ELEMENT
    INCLUDE units_known
#endif
#elif SIDES > 3
    MATRIX_LEFT lefts[FR];
    NEAR near[2 * FC];
    int from_right[FC];
    UNROLL for (int c = 0; c < FC; ++c) {
        from_right[c] = FIRST_RIGHT(c);
        LOAD_NEAR(near[c], from_right[c]);
    }
#if FEW
    ROLLED
#endif
    for (int round = 0; round < stages; ++round) {
        {
            const int stage = AGAIN != 0 ? IMIN(round + 1, stages - 1) : round + 1;
    INCLUDE fetch
        }
        const int from_a = (round & 1) * SIDE + start_a;
        const int step = round * (STEPS * 32);
        UNROLL for (int s = 0; s < STEPS; ++s) {
            UNROLL for (int c = 0; c < FC; ++c) LOAD_NEAR(near[(s + 1) % 2 * FC + c], from_right[c] + step + (s + 1) * 32);
            UNROLL for (int r = 0; r < FR; ++r) {
                LOAD_LEFT(lefts[r], tile, from_a + r * UNIT_ROWS * PITCH_A + s * UNIT_DEPTH / 8, PITCH_A);
            }
            UNROLL for (int c = 0; c < FC; ++c) {
                MATRIX_RIGHT right;
                FRAGMENT(right, near[s % 2 * FC + c]);
                UNROLL for (int r = 0; r < FR; ++r) sums[r * FC + c] = MULTIPLY_ADD(lefts[r], right, sums[r * FC + c]);
            }
        }
        const int side = (1 - (round & 1)) * SIDE;
    INCLUDE units_put
        BARRIER;
    }
#ifdef ELEMENT
    INCLUDE units_known
#endif
#elif SIDES > 2
    MATRIX_LEFT lefts[2 * FR];
    MATRIX_RIGHT rights[2 * FC];
    {
        const int stage = 1;
    INCLUDE fetch
    }
    UNROLL for (int r = 0; r < FR; ++r) LOAD_LEFT(lefts[r], tile, start_a + r * UNIT_ROWS * PITCH_A, PITCH_A);
    UNROLL for (int c = 0; c < FC; ++c) LOAD_RIGHT(rights[c], tile, start_b + c * RIGHT_COLUMNS, PITCH_B);
    for (int first = 0; first < stages; first += EVEN_STEPS / STEPS) {
        UNROLL for (int s = 0; s < EVEN_STEPS; ++s) {
            const int round = first + s / STEPS;
            if (s / STEPS == 0 || round < stages) {
                if (s % STEPS == STEPS - 1) {
                    const int side = (round + 1) % 2 * SIDE;
                    const int stage = AGAIN != 0 ? IMIN(round + 2, stages - 1) : round + 2;
    INCLUDE units_put
                    BARRIER;
    INCLUDE fetch
                }
                const int from_a = (round + (s % STEPS + 1) / STEPS) % 2 * SIDE + start_a + (s + 1) % STEPS * UNIT_DEPTH / 8;
                const int from_b = (round + (s % STEPS + 1) / STEPS) % 2 * SIDE + start_b + (s + 1) % STEPS * RIGHT_DEPTH;
                UNROLL for (int r = 0; r < FR; ++r) {
                    LOAD_LEFT(lefts[(s + 1) % 2 * FR + r], tile, from_a + r * UNIT_ROWS * PITCH_A, PITCH_A);
                }
                UNROLL for (int c = 0; c < FC; ++c) {
                    LOAD_RIGHT(rights[(s + 1) % 2 * FC + c], tile, from_b + c * RIGHT_COLUMNS, PITCH_B);
                }
                UNROLL for (int r = 0; r < FR; ++r) {
                    UNROLL for (int c = 0; c < FC; ++c) {
                        sums[r * FC + c] = MULTIPLY_ADD(lefts[s % 2 * FR + r], rights[s % 2 * FC + c], sums[r * FC + c]);
                    }
                }
            }
        }
    }
#else
    for (int round = 0; round < stages; ++round) {
        {
            const int stage = AGAIN != 0 ? IMIN(round + 1, stages - 1) : round + 1;  // beyond the last one nothing is read
    INCLUDE fetch
        }
        {
            const int from_a = round % SIDES * SIDE + start_a;
            const int from_b = round % SIDES * SIDE + start_b;
    INCLUDE units_stage
        }
        if (SIDES == 1) BARRIER;
        const int side = (round + 1) % SIDES * SIDE;
    INCLUDE units_put
        BARRIER;
    }
#endif
#if IN_REGISTERS
    // `fragments` names the columns so that a work-item has of each matrix of sums four that lie side by side, of two rows: none
    // passes through local memory. What is done with a row of matrices is written once: written out it fills the cache of
    // instructions, and takes longer than the products. All that is read beside the sums is on its way
    // before the first result of a row is stored.
#if defined(EIGHTS_OUT) || defined(DEALT_OUT)
#undef STORE_dst
#define STORE_dst(i, v) { place = (i); now = RAW4_OF(v); }
    int place;
    RAW4 now;
    RAW4 before;
#endif
    ROLLED for (int r = 0; r < FR; ++r) {
#ifdef DEALT_OUT
        const int matrix = (first_row / 16 + down * FR + r) * (columns4 / 4) + first_column / 4 + across * FC;
#endif
        WIDE4 kept[TWICE_COLUMNS];
        WIDE4 others[TWICE_COLUMNS];
        UNROLL for (int s = 0; s < FR; ++s) {
            if (r == s) {
                UNROLL for (int c = 0; c < FC; ++c) {
                    kept[UP_AT(c)] = SUM_UP(sums[s * FC + c]);
                    kept[LOW_AT(c)] = SUM_LOW(sums[s * FC + c]);
                }
            }
        }
        UNROLL for (int t = 0; t < TWICE_COLUMNS; ++t) {
    INCLUDE finish_place
#ifdef ELEMENT
            kept[t] += WIDE_SPLAT(unlike);
#endif
    INCLUDE finish_fetch
        }
        UNROLL for (int t = 0; t < TWICE_COLUMNS; ++t) {
    INCLUDE finish_place
            WIDE4 sum = kept[t];
            const WIDE4 other = others[t];
#ifdef EIGHTS_OUT
            place = -1;
#endif
    INCLUDE finish
#if defined(EIGHTS_OUT)
            if (t % 2 == 1 && place >= 0) STORE_RAW8_dst(place / 2, RAW8_PAIR(before, now));
            before = now;
#elif defined(DEALT_OUT)
            if (t % 2 == 1 && (WHOLE != 0 || (row - 8 < rows && column < columns4))) {
                STORE_RAW8_dst((matrix + t / 2) * 32 + LANE, RAW8_PAIR(before, now));
            }
            before = now;
#endif
        }
    }
#else
    // A row of matrices at a time, through local memory: there a work-item finds four columns of a row side by side. All
    // that it reads is on its way before the first result is stored.
    const int first_strip = (down * ACROSS + across) * STRIP;
    UNROLL for (int r = 0; r < FR; ++r) {
        UNROLL for (int c = 0; c < FC; ++c) {
            STORE_MATRIX(sums[r * FC + c], tile, first_strip + part * PART_STRIPS + c * UNIT_COLUMNS / 4, PITCH_STRIP);
        }
        if (PARTS > 1) BARRIER; else SUBGROUP_BARRIER;
        for (int first = 0; first < STRIP_VECTORS; first += AT_ONCE * PARTS * WIDTH) {
            WIDE4 kept[AT_ONCE];
            WIDE4 others[AT_ONCE];
            UNROLL for (int t = 0; t < AT_ONCE; ++t) {
                const int at = IMIN(first + (t * PARTS + part) * WIDTH + LANE, STRIP_VECTORS - 1);
    INCLUDE finish_place
    INCLUDE units_sum
                kept[t] = sum;
    INCLUDE finish_fetch
            }
            UNROLL for (int t = 0; t < AT_ONCE; ++t) {
                const int at = IMIN(first + (t * PARTS + part) * WIDTH + LANE, STRIP_VECTORS - 1);
    INCLUDE finish_place
                WIDE4 sum = kept[t];
                const WIDE4 other = others[t];
    INCLUDE finish
            }
        }
        if (PARTS > 1) BARRIER; else SUBGROUP_BARRIER;
    }
#endif
