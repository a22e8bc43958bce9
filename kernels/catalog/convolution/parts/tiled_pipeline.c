    const int rounds = (stages + SPLIT - 1) / SPLIT;
#if AHEAD
    {
        const int stage = part;
    INCLUDE fetch
        const int side = part * 2;
    INCLUDE tiled_put
    }
    BARRIER;
    for (int round = 0; round < rounds; ++round) {
        {
            const int stage = (round + 1) * SPLIT + part;  // beyond the last one nothing is read
    INCLUDE fetch
        }
        {
            const int side = part * 2 + round % 2;
    INCLUDE tiled_stage
        }
        const int side = part * 2 + (round + 1) % 2;
    INCLUDE tiled_put
        BARRIER;
    }
#else
    for (int round = 0; round <= rounds; ++round) {
        if (round < rounds) {
            const int stage = round * SPLIT + part;
    INCLUDE fetch
        }
        if (round > 0) {
            const int side = part * 2 + (round - 1) % 2;
    INCLUDE tiled_stage
        }
        if (round < rounds) {
            const int side = part * 2 + round % 2;
    INCLUDE tiled_put
        }
        BARRIER;
    }
#endif
    INCLUDE tiled_sum_up
    INCLUDE tiled_store
