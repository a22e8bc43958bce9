            UNROLL for (int j = 0; j < STACK_SLOTS; ++j) {
                const int dy = ky[j] * dh;
                const int dx = kx[j] * dw;
                const int from = stack[j] * h * w;
                UNROLL for (int i = 0; i < PIXEL_SLOTS; ++i) {
                    const int iy = top[i] + dy;
                    const int ix = left[i] + dx;
                    const bool inside = INSIDE(iy, h) && INSIDE(ix, w) && ky[j] < kh;
                    next_src[j * PIXEL_SLOTS + i] = RAW_ZERO;
                    if (inside) next_src[j * PIXEL_SLOTS + i] = LOAD_RAW_src(plane[i] + from + PLACE(iy, h) * w + PLACE(ix, w));
                }
                stack[j] += DEPTH * SPLIT;
                while (stack[j] >= in_stacks) {
                    stack[j] -= in_stacks;
                    kx[j] += 1;
                    if (kx[j] == kw) {
                        kx[j] = 0;
                        ky[j] += 1;
                    }
                }
            }
            UNROLL for (int j = 0; j < LOADS_WEIGHT; ++j) {
                next_weight[j] = RAW_ZERO;
                if (me + j * GROUP < HALF_WEIGHT && stage < stages) next_weight[j] = LOAD_RAW_weight(weight_at + j * GROUP);
            }
            weight_at += HALF_WEIGHT * SPLIT;
