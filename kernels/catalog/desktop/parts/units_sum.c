                const int from = first_strip + row_at * PITCH_STRIP + column_at;
                WIDE4 sum = FROM_BITS(tile[from]);
#if SIDES > 3 && defined(ELEMENT)
                sum += WIDE_SPLAT(unlike);
#endif
                for (int p = 1; p < PARTS; ++p) sum += FROM_BITS(tile[from + p * PART_STRIPS]);
