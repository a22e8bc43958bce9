    FOLD_REST
    UNROLL for (int p = 0; p < PIXELS; ++p) {
        if (!LEFT && ox + p < ow) {
            const int pixel = oy * ow + ox + p;
            WIDE4 sum = sums[p];
            if (has_residual != 0) {
                sum += TO_WIDE4(LOAD_residual((picture * residual_stacks + residual_stack0 + stack) * oh * ow + pixel));
            }
            const int to = picture * dst_stacks + dst_stack0 + stack;
            STORE_dst(to * oh * ow + pixel, ACTIVATE(sum));
        }
    }
