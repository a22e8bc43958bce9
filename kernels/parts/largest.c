    // The largest of what the work-items have, in partial[0].
    BARRIER;
    for (int half_way = KY / 2; half_way > 0; half_way /= 2) {
        if (me < half_way) partial[me] = MAX(partial[me], partial[me + half_way]);
        BARRIER;
    }
