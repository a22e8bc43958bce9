    // Both operands pass through local memory, TILE_DEPTH deep a stage, while the next stage is fetched. With two SIDES
    // one is read while the other is filled, with one barrier a stage. DOWN x ACROSS subgroups multiply FR x FC matrices
    // each, STEPS times a stage; PARTS such sets share out the depth. TURNED: the right operand lies by columns.
    MATRIX_SUM sums[SUMS];
    UNROLL for (int i = 0; i < SUMS; ++i) sums[i] = NO_SUM;
    RAW8 next_a[LOADS_A];
    RAW8 next_b[LOADS_B];
    const int part = SUBGROUP / (DOWN * ACROSS);
    const int down = SUBGROUP / ACROSS % DOWN;
    const int across = SUBGROUP % ACROSS;
    const int start_a = down * FR * UNIT_ROWS * PITCH_A + part * STEPS * UNIT_DEPTH / 8;
    const int start_b = START_B + across * FC * RIGHT_COLUMNS + part * STEPS * RIGHT_DEPTH;
    {
        const int side = 0;
        const int stage = 0;
    INCLUDE fetch
    INCLUDE units_put
    }
    BARRIER;
    for (int round = 0; round < stages; ++round) {
        {
            const int stage = AGAIN != 0 ? IMIN(round + 1, stages - 1) : round + 1;  // beyond the last one nothing is read
    INCLUDE fetch
        }
        {
            const int from_a = round % SIDES * SIDE + start_a;
            const int from_b = round % SIDES * SIDE + start_b;
    INCLUDE units_stage
        }
        if (SIDES == 1) BARRIER;
        const int side = (round + 1) % SIDES * SIDE;
    INCLUDE units_put
        BARRIER;
    }
    // A row of matrices at a time, through local memory: there a work-item finds four columns of a row side by side.
    const int first_strip = (down * ACROSS + across) * STRIP;
    UNROLL for (int r = 0; r < FR; ++r) {
        UNROLL for (int c = 0; c < FC; ++c) {
            STORE_MATRIX(sums[r * FC + c], tile, first_strip + part * PART_STRIPS + c * UNIT_COLUMNS / 4, PITCH_STRIP);
        }
        if (PARTS > 1) BARRIER; else SUBGROUP_BARRIER;
        for (int at = part * WIDTH + LANE; at < STRIP_VECTORS; at += PARTS * WIDTH) {
    INCLUDE finish
        }
        if (PARTS > 1) BARRIER; else SUBGROUP_BARRIER;
    }
