        UNROLL for (int f = 0; f < FETCHES; ++f) {
            const int square = me + f * GROUP;
            if (square < FETCHES_A) {
                UNROLL for (int j = 0; j < 4; ++j) {
                    if (WHOLE != 0) {
                        next[f * 4 + j] = LOAD_a(from[f] + j * a_stride);
                    } else {
                        const int valid = depth - fetch_k[f];  // lanes that are data
                        next[f * 4 + j] = SPLAT(0.0f);
                        if (valid > 0) {
                            const FLOAT4 v = LOAD_a(from[f] + IMIN(fetch_row[f] + j, rows - 1) * a_stride);
                            next[f * 4 + j] =
                                VEC4(v.x, valid > 1 ? v.y : ZERO, valid > 2 ? v.z : ZERO, valid > 3 ? v.w : ZERO);
                        }
                    }
                }
            } else if (square < FETCHES_ALL) {
                UNROLL for (int j = 0; j < 4; ++j) {
                    if (WHOLE != 0) {
                        next[f * 4 + j] = LOAD_b(from[f] + j * b_stride);
                    } else {
                        next[f * 4 + j] = SPLAT(0.0f);
                        if (fetch_k[f] + j < depth) next[f * 4 + j] = LOAD_b(from[f] + j * b_stride);
                    }
                }
            }
        }
