#if SQUARE
        UNROLL for (int k = 0; k < TILE_DEPTH; ++k) {
            FLOAT4 value[PIXEL_VECTORS];
            UNROLL for (int p = 0; p < PIXEL_VECTORS; ++p) {
                value[p] = tile_src[side * HALF_SRC + k * (TILE_PIXELS / 4) + tx + p * TX];
            }
            UNROLL for (int v = 0; v < TV; ++v) {
                const FLOAT4 w = tile_weight[side * HALF_WEIGHT + k * TILE_VECTORS + ty + v * TY];
                UNROLL for (int p = 0; p < PIXEL_VECTORS; ++p) {
                    chunk[(p * 4 + 0) * TV + v] = MAD(SPLAT(value[p].x), w, chunk[(p * 4 + 0) * TV + v]);
                    chunk[(p * 4 + 1) * TV + v] = MAD(SPLAT(value[p].y), w, chunk[(p * 4 + 1) * TV + v]);
                    chunk[(p * 4 + 2) * TV + v] = MAD(SPLAT(value[p].z), w, chunk[(p * 4 + 2) * TV + v]);
                    chunk[(p * 4 + 3) * TV + v] = MAD(SPLAT(value[p].w), w, chunk[(p * 4 + 3) * TV + v]);
                }
            }
        }
#else
        UNROLL for (int d = 0; d < DEPTH; ++d) {
            FLOAT4 value[TP];
            UNROLL for (int p = 0; p < TP; ++p) {
                value[p] = tile_src[side * HALF_SRC + d * TILE_PIXELS + tx + p * TX];
            }
            UNROLL for (int v = 0; v < TV; ++v) {
                const int column = side * HALF_WEIGHT + d * 4 * TILE_VECTORS + ty + v * TY;
                const FLOAT4 w0 = tile_weight[column];
                const FLOAT4 w1 = tile_weight[column + TILE_VECTORS];
                const FLOAT4 w2 = tile_weight[column + 2 * TILE_VECTORS];
                const FLOAT4 w3 = tile_weight[column + 3 * TILE_VECTORS];
                UNROLL for (int p = 0; p < TP; ++p) {
                    FLOAT4 sum = chunk[p * TV + v];
                    sum = MAD(SPLAT(value[p].x), w0, sum);
                    sum = MAD(SPLAT(value[p].y), w1, sum);
                    sum = MAD(SPLAT(value[p].z), w2, sum);
                    chunk[p * TV + v] = MAD(SPLAT(value[p].w), w3, sum);
                }
            }
        }
#endif
        FOLD(DEPTH)
