        // parts hand their sums to the first quarter of them, until one is left
        for (int left = parts; left > 1; left = (left + 3) / 4) {
            const int quarter = (left + 3) / 4;
            const int own = part * width + column;
            if (part >= quarter && part < left) {
                UNROLL for (int r = 0; r < ROWS; ++r) partial[r * WAITING + own - quarter * width] = sums[r];
            }
            BARRIER;
            if (part < quarter) {
                for (int other = part; other < left - quarter; other += quarter) {
                    UNROLL for (int r = 0; r < ROWS; ++r) sums[r] += partial[r * WAITING + other * width + column];
                }
            }
            BARRIER;
        }
