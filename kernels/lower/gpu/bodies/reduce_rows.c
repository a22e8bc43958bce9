// One work-group a row of n elements that lie side by side: they are shared out and meet in local memory.
{
    INCLUDE joined
    INCLUDE taken
    const int me = LOCAL_ID(0);
    const int start = GROUP_ID(0) * n;
    HELD found = TAKEN(start + me);
    for (int first = me + KY; first < n; first += IN_A_ROW * KY) {
        HELD part = TAKEN(start + first);
        for (int k = first + KY; k < IMIN(first + IN_A_ROW * KY, n); k += KY) {
            const HELD x = TAKEN(start + k);
            part = JOINED(part, x);
        }
        found = JOINED(found, part);
    }
    partial[me] = found;
    BARRIER;
    for (int half_way = KY / 2; half_way > 0; half_way /= 2) {
        if (me < half_way) partial[me] = JOINED(partial[me], partial[me + half_way]);
        BARRIER;
    }
    if (me == 0) STORE_dst(GROUP_ID(0), partial[0] * scale);
}
