    FOLD_REST
    UNROLL for (int t = 0; t < VECTORS; ++t) {
        UNROLL for (int part = 0; part < PARTS; ++part) {
            const int stack = first + t * PARTS + part;
            if (!LEFT && stack < out_stacks) {
                UNROLL for (int p = 0; p < PIXELS; ++p) {
                    if (ox + p < ow) {
                        const int pixel = oy * ow + ox + p;
                        WIDE4 sum = PART(sums[p * VECTORS + t], part);
                        if (has_residual != 0) {
                            sum += TO_WIDE4(LOAD_residual((picture * residual_stacks + residual_stack0 + stack) * oh * ow + pixel));
                        }
                        TRIM(stack == out_stacks - 1, sum)
                        const int plane = picture * dst_stacks + dst_stack0 + stack;
                        STORE_dst(plane * oh * ow + pixel, ACTIVATE(sum));
                    }
                }
            }
        }
    }
