            const int row_at = at / STRIP_COLUMNS4;
            const int column_at = at % STRIP_COLUMNS4;
            const int row = first_row + (down * FR + r) * UNIT_ROWS + row_at;
            const int column = first_column + across * FC * UNIT_COLUMNS / 4 + column_at;
            if (WHOLE != 0 || (row < rows && column < columns4)) {
    INCLUDE units_sum
                if (has_bias != 0) sum += TO_WIDE4(LOAD_bias(column));
                STORE_dst(dst_start + batch * dst_batch + row * dst_stride + column, ACTIVATE(sum));
            }
