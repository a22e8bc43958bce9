#ifdef NORMALISED
                const int of_row = 2 * (PARTS * TILE_ROWS + (down * FR + r) * UNIT_ROWS + row_at);
                kept[t] -= WIDE_SPLAT(statistics[of_row]) * LOAD_columns_sum(IMIN(column, columns4 - 1));
                kept[t] *= WIDE_SPLAT(statistics[of_row + 1]);
#endif
#ifdef EIGHTS_OUT
                if (t % 2 == 0) others[t] = others[t / 2 * 2 + 1] = WIDE_SPLAT(0.0f);
#else
                others[t] = WIDE_SPLAT(0.0f);
#endif
#if !IN_REGISTERS
                if (has_bias != 0) kept[t] += TO_WIDE4(LOAD_bias(IMIN(column, columns4 - 1)));
#endif
#ifdef EIGHTS_OUT
                if (t % 2 == 0) BESIDES(others[t], others[t / 2 * 2 + 1], dst_start + batch * dst_batch + IMIN(row, rows - 1) * dst_stride + IMIN(column, columns4 - 2));
#else
                BESIDE(others[t], dst_start + batch * dst_batch + IMIN(row, rows - 1) * dst_stride + IMIN(column, columns4 - 1));
#endif
