            UNROLL for (int f = 0; f < LOADS_A; ++f) {
                const int at = me + f * GROUP;
    INCLUDE place
                const int k4 = 2 * (stage * TILE_DEPTH8 + depth_at);
                const int row = first_row + row_at;
                const int line = a_from + (WHOLE != 0 ? row : IMIN(row, rows - 1)) * a_stride;
                next_a[f] = RAW8_ZERO;
                if ((EVEN_A != 0 || at < VECTORS_A) && (AGAIN != 0 || 4 * k4 < depth)) {
                    if (EIGHTS_A != 0) {
                        next_a[f] = LOAD_RAW8_a((line >> 1) + stage * TILE_DEPTH8 + depth_at);
                    } else {
                        next_a[f].xy = LOAD_RAW_a(line + k4);
                        if (AGAIN != 0 || 4 * k4 + 4 < depth) next_a[f].zw = LOAD_RAW_a(line + k4 + 1);
                    }
                }
            }
#if SIDES < 4
            UNROLL for (int f = 0; f < LOADS_B; ++f) {
                const int at = me + f * GROUP;
                next_b[f] = RAW8_ZERO;
#if TURNED
                const int k8 = stage * TILE_DEPTH8 + at % ROW_B;
                const int column = 4 * first_column + SPREAD(at / ROW_B, SPREAD_B);
                if ((EVEN_B != 0 || at < VECTORS_B) && (AGAIN != 0 || 8 * k8 < depth)) {
                    next_b[f] = LOAD_RAW8_b(b_from + (WHOLE != 0 ? column : IMIN(column, 4 * columns4 - 1)) * b_stride + k8);
                }
#else
                const int k = stage * TILE_DEPTH + SPREAD(at / ROW_B, SPREAD_B);
                const int column = first_column + 2 * (at % ROW_B);
                const int from = b_from + k * b_stride;
                if ((EVEN_B != 0 || at < VECTORS_B) && (AGAIN != 0 || k < depth)) {
                    if (EIGHTS_B != 0) {
                        next_b[f] = LOAD_RAW8_b((from + (WHOLE != 0 ? column : IMIN(column, columns4 - 2))) / 2);
                    } else {
                        next_b[f].xy = LOAD_RAW_b(from + IMIN(column, columns4 - 1));
                        next_b[f].zw = LOAD_RAW_b(from + IMIN(column + 1, columns4 - 1));
                    }
                }
#endif
            }
#endif
