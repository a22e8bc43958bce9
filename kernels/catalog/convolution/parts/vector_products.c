        // A vector of inputs of each pixel, `ahead` of its own place, times its weights, added to `chunk`.
        UNROLL for (int t = 0; t < VECTORS; ++t) {
            const VECTOR w0 = WEIGHT(t * 4);
            const VECTOR w1 = WEIGHT(t * 4 + 1);
            const VECTOR w2 = WEIGHT(t * 4 + 2);
            const VECTOR w3 = WEIGHT(t * 4 + 3);
            UNROLL for (int p = 0; p < PIXELS; ++p) {
                VECTOR sum = chunk[p * VECTORS + t];
                sum = MAD(VSPLAT(value[p + ahead].x), w0, sum);
                sum = MAD(VSPLAT(value[p + ahead].y), w1, sum);
                sum = MAD(VSPLAT(value[p + ahead].z), w2, sum);
                chunk[p * VECTORS + t] = MAD(VSPLAT(value[p + ahead].w), w3, sum);
            }
        }
