#if IN_REGISTERS
                const int row_at = LANE / 4 + t % 2 * 8;
                const int column_at = t / 2 * 4 + LANE % 4;
#else
                const int row_at = at % UNIT_ROWS;
                const int column_at = at / UNIT_ROWS;
#endif
                const int row = first_row + (down * FR + r) * UNIT_ROWS + row_at;
                const int column = across * FC * UNIT_COLUMNS / 4 + column_at;
                const int stack = GROUP_ID(1) * (2 * TILE_COLUMNS8) + column;
                const int picture = row / pixels;
                const int pixel = row - picture * pixels;
