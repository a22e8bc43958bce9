            UNROLL for (int f = 0; f < LOADS_A; ++f) {
                const int at = me + f * GROUP;
    INCLUDE place
                if (EVEN_A != 0 || at < VECTORS_A) tile[side + row_at * PITCH_A + depth_at] = next_a[f];
            }
#if SIDES < 4
            UNROLL for (int f = 0; f < LOADS_B; ++f) {
                const int at = me + f * GROUP;
                if (EVEN_B != 0 || at < VECTORS_B) tile[side + START_B + SPREAD(at / ROW_B, SPREAD_B) * PITCH_B + at % ROW_B] = next_b[f];
            }
#endif
