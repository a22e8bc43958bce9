        if (next_stage < stages) {
            const int depth8 = next_stage * DEPTH8;
            UNROLL for (int f = 0; f < LOADS_A; ++f) {
                const int line = IMIN(first_row + a_row + f * LINES, rows - 1);
                const ulong from = from_a + 8 * (ulong)(line * a_stride) + 16 * (ulong)(depth8 + a_depth);
                COPY_A(fill + a_to + f * (LINES * SPAN), from, 8 * (depth8 + a_depth) < depth);
            }
#if TURNED
            UNROLL for (int f = 0; f < LOADS_B; ++f) {
                const int line = IMIN(first_column + b_row + f * LINES, 4 * columns4 - 1);
                const ulong from = from_b + 16 * (ulong)(line * b_stride + depth8 + b_depth);
                COPY(fill + START_B + b_to + f * (LINES * SPAN), from, 8 * (depth8 + b_depth) < depth);
            }
#else
            UNROLL for (int f = 0; f < LOADS_B; ++f) {
                const int line = next_stage * TILE_DEPTH + b_row + f * LINES_B;
                const int column8 = first_column / 8 + b_column;
                const bool there = line < depth && 2 * column8 < columns4;
                const ulong from = from_b + 8 * (ulong)(IMIN(line, depth - 1) * b_stride) + (there ? 16 * column8 : 0);
                COPY(fill + START_B + b_to + f * (LINES_B * 128), from, there);
            }
#endif
        }
        COMMIT;
        next_stage += 1;
        fill = fill == base + (STAGES - 1) * SIDE ? base : fill + SIDE;
