            UNROLL for (int f = 0; f < LOADS_A; ++f) {
                const int iy = top[f] + ky[f] * dh;
                const int ix = left[f] + kx[f] * dw;
                next_a[f] = RAW8_ZERO;
                if (INSIDE(iy, h) && INSIDE(ix, w) && ky[f] < kh && stage < stages) {
                    const int from = plane[f] + 2 * pair[f] * h * w + PLACE(iy, h) * w + PLACE(ix, w);
                    next_a[f].xy = LOAD_RAW_src(from);
                    if (2 * pair[f] + 1 < in_stacks) next_a[f].zw = LOAD_RAW_src(from + h * w);
                }
                pair[f] += step_pair;
                kx[f] += step_x + (pair[f] >= in_pairs ? 1 : 0);
                pair[f] -= pair[f] >= in_pairs ? in_pairs : 0;
                ky[f] += step_y + (kx[f] >= kw ? 1 : 0);
                kx[f] -= kx[f] >= kw ? kw : 0;
            }
#if SIDES < 4
            UNROLL for (int f = 0; f < LOADS_B; ++f) {
                const int at = me + f * GROUP;
                next_b[f] = RAW8_ZERO;
                if ((EVEN_B != 0 || at < VECTORS_B) && stage < stages) next_b[f] = LOAD_RAW8_weight(weight_at + SPREAD(at / ROW_B, SPREAD_B) * ROW_B + at % ROW_B);
            }
            weight_at += VECTORS_B;
#endif
