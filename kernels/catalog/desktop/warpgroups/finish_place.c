                const int at = first + 32 * t;
                const int row = strip_row + at / (COLUMNS / 4);
                const int column = first_column / 4 + at % (COLUMNS / 4);
