    WIDE4 sums[SUMS];
    UNROLL for (int v = 0; v < TV; ++v) {
        WIDE4 start = WIDE_SPLAT(0.0f);
        if (part == 0) start = TO_WIDE4(LOAD_bias(channel_tile * TILE_VECTORS + ty + v * TY));
        UNROLL for (int p = 0; p < TP; ++p) sums[p * TV + v] = start;
    }
    CHUNK_SUMS
