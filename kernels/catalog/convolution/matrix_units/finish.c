            const int row_at = at % UNIT_ROWS;
            const int column_at = at / UNIT_ROWS;
            const int row = first_row + (down * FR + r) * UNIT_ROWS + row_at;
            const int column = across * FC * UNIT_COLUMNS / 4 + column_at;
            const int stack = GROUP_ID(1) * (2 * TILE_COLUMNS8) + column;
            if (row < rows && stack < out_stacks) {
    INCLUDE units_sum
                const int picture = row / pixels;
                const int pixel = row - picture * pixels;
                sum += TO_WIDE4(LOAD_bias(channel_tile * (2 * TILE_COLUMNS8) + column));
                if (has_residual != 0) {
                    sum += TO_WIDE4(LOAD_residual((picture * residual_stacks + residual_stack0 + first_stack + stack) * pixels + pixel));
                }
                TRIM(stack == out_stacks - 1, sum)
                STORE_dst((picture * dst_stacks + dst_stack0 + first_stack + stack) * pixels + pixel, ACTIVATE(sum));
            }
