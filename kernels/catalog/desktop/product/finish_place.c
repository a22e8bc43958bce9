#if IN_REGISTERS
#ifdef PAIRED
                const int row_at = LANE / 4 + t / 2 % 2 * 8;
                const int column_at = t / 4 * 8 + LANE % 4 * 2 + t % 2;
#else
                const int row_at = LANE / 4 + t % 2 * 8;
                const int column_at = t / 2 * 4 + LANE % 4;
#endif
#else
                const int row_at = at / STRIP_COLUMNS4;
                const int column_at = at % STRIP_COLUMNS4;
#endif
                const int row = first_row + (down * FR + r) * UNIT_ROWS + row_at;
                const int column = first_column + across * FC * UNIT_COLUMNS / 4 + column_at;
