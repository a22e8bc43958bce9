// Rows of an array (outer, axis, inner) by a work-item each, or by a work-group of KY: then the elements are shared out,
// and maximum and sum meet in local memory. count = outer * inner.
{
#ifdef KY
    const int me = LOCAL_ID(0);
    const int row = GROUP_ID(0);
#define STEP KY
#else
    const int me = 0;
    const int row = GLOBAL_ID(0);
    if (row >= count) return;
#define STEP 1
#endif
    const int start = row / inner * axis * inner + row % inner;
#define AT(i) (start + (i) * inner)
    float most = -3.4028234e38f;
    for (int i = me; i < axis; i += STEP) most = MAX(most, LOAD_src(AT(i)));
#ifdef KY
    partial[me] = most;
    INCLUDE largest
    most = partial[0];
    BARRIER;
#endif
    float sum = 0.0f;
    for (int first = me; first < axis; first += IN_A_ROW * STEP) {
        float part = 0.0f;
        for (int i = first; i < IMIN(first + IN_A_ROW * STEP, axis); i += STEP) part += EXP(LOAD_src(AT(i)) - most);
        sum += part;
    }
#ifdef KY
    partial[me] = sum;
    INCLUDE summed
    sum = partial[0];
#endif
    for (int i = me; i < axis; i += STEP) STORE_dst(AT(i), EXP(LOAD_src(AT(i)) - most) / sum);
}
