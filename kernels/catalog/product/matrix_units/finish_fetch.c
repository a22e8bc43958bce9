                others[t] = WIDE_SPLAT(0.0f);
                if (has_bias != 0) kept[t] += TO_WIDE4(LOAD_bias(IMIN(column, columns4 - 1)));
                BESIDE(others[t], dst_start + batch * dst_batch + IMIN(row, rows - 1) * dst_stride + IMIN(column, columns4 - 1));
