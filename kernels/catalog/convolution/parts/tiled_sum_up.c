    FOLD_REST
    if (SPLIT > 1) {
        if (part > 0) {
            UNROLL for (int i = 0; i < SUMS; ++i) tile_src[((part - 1) * SUMS + i) * GROUP + me] = TO_COMPUTED(sums[i]);
        }
        BARRIER;
        for (int other = 0; other < SPLIT - 1; ++other) {
            UNROLL for (int i = 0; i < SUMS; ++i) sums[i] += TO_WIDE4(tile_src[(other * SUMS + i) * GROUP + me]);
        }
        if (part > 0) return;
    }
