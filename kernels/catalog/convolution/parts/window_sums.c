    const int first = GROUP_ID(1) * STACKS;
    const int picture = GROUP_ID(2);
    const int in_first = src_stack0 + IMIN(first * 4 / group_outputs * group_inputs / 4, last_in_first);

    WIDEV sums[SUMS];
    UNROLL for (int t = 0; t < VECTORS; ++t) {
        const WIDEV start = TO_WIDEV(LOADV_bias(GROUP_ID(1) * VECTORS + t));
        UNROLL for (int p = 0; p < PIXELS; ++p) sums[p * VECTORS + t] = start;
    }
    CHUNK_SUMS
