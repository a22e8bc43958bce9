    const int stack = GROUP_ID(1);
    const int picture = GROUP_ID(2);
    const int plane = (picture * src_stacks + src_stack0 + stack) * h * w;

    WIDE4 sums[SUMS];
    UNROLL for (int p = 0; p < PIXELS; ++p) sums[p] = TO_WIDE4(LOAD_bias(stack));
    CHUNK_SUMS
