    UNROLL for (int v = 0; v < TV; ++v) {
        const int stack = GROUP_ID(1) * TILE_VECTORS + ty + v * TY;
        if (stack < out_stacks) {
            UNROLL for (int p = 0; p < TP; ++p) {
                const int pixel = first_pixel + (SQUARE != 0 ? 4 * (tx + p / 4 * TX) + p % 4 : tx + p * TX);
                if (pixel < pixels) {
    INCLUDE place
                    WIDE4 sum = sums[p * TV + v];
                    if (has_residual != 0) {
                        sum += TO_WIDE4(LOAD_residual((picture * residual_stacks + residual_stack0 + first_stack + stack) * area + place));
                    }
                    TRIM(stack == out_stacks - 1, sum)
                    STORE_dst((written * dst_stacks + dst_stack0 + first_stack + stack) * area + place, ACTIVATE(sum));
                }
            }
        }
    }
