// A plain array of shape (outer, axis, inner); one work-item a row; count = outer * inner.
{
    const int row = GLOBAL_ID(0);
    if (row >= count) return;
    const int start = row / inner * axis * inner + row % inner;
    float most = -3.4028234e38f;
    for (int i = 0; i < axis; ++i) most = MAX(most, LOAD_src(start + i * inner));
    float sum = 0.0f;
    for (int first = 0; first < axis; first += IN_A_ROW) {
        float part = 0.0f;
        for (int i = first; i < IMIN(first + IN_A_ROW, axis); ++i) part += EXP(LOAD_src(start + i * inner) - most);
        sum += part;
    }
    for (int i = 0; i < axis; ++i) STORE_dst(start + i * inner, EXP(LOAD_src(start + i * inner) - most) / sum);
}
