// One work-group a row of a row-major array: its elements are shared out, maximum and sum meet in local memory.
{
    const int me = LOCAL_ID(0);
    const int start = GROUP_ID(0) * axis;
    float most = -3.4028234e38f;
    for (int i = me; i < axis; i += KY) most = MAX(most, LOAD_src(start + i));
    partial[me] = most;
    INCLUDE largest
    most = partial[0];
    BARRIER;
    float sum = 0.0f;
    for (int first = me; first < axis; first += IN_A_ROW * KY) {
        float part = 0.0f;
        for (int i = first; i < IMIN(first + IN_A_ROW * KY, axis); i += KY) part += EXP(LOAD_src(start + i) - most);
        sum += part;
    }
    partial[me] = sum;
    INCLUDE summed
    sum = partial[0];
    for (int i = me; i < axis; i += KY) STORE_dst(start + i, EXP(LOAD_src(start + i) - most) / sum);
}
