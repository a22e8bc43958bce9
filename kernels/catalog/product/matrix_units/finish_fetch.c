#ifdef NORMALISED
                const int of_row = 2 * (PARTS * TILE_ROWS + (down * FR + r) * UNIT_ROWS + row_at);
                kept[t] -= WIDE_SPLAT(statistics[of_row]) * LOAD_columns_sum(IMIN(column, columns4 - 1));
                kept[t] *= WIDE_SPLAT(statistics[of_row + 1]);
#endif
                others[t] = WIDE_SPLAT(0.0f);
#if !IN_REGISTERS
                if (has_bias != 0) kept[t] += TO_WIDE4(LOAD_bias(IMIN(column, columns4 - 1)));
#endif
                BESIDE(others[t], dst_start + batch * dst_batch + IMIN(row, rows - 1) * dst_stride + IMIN(column, columns4 - 1));
