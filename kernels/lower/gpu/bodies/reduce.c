// Each part of a row of n elements to one number; rows are (outer, n, inner), the result is (outer, parts, inner).
{
    const int i = GLOBAL_ID(0);
    if (i >= count) return;
    const int column = i % inner;
    const int first = i / inner % parts * part_length;
    const int last = IMIN(first + part_length, n);
    const int start = i / inner / parts * n * inner + column;
    float found = LOAD_src(start + first * inner);
    int at = first;
    for (int k = first + 1; k < last; ++k) {
        const float x = LOAD_src(start + k * inner);
#if KIND == 0
        found += x;
#elif KIND == 1
        found = (x > found || x != x) ? x : found;
#elif KIND == 2
        found = (x < found || x != x) ? x : found;
#elif KIND == 3
        found *= x;
#else
        if (KIND == 4 ? x > found : KIND == 5 ? x < found : KIND == 6 ? x >= found : x <= found) {
            found = x;
            at = k;
        }
#endif
    }
    STORE_dst(i, KIND >= 4 ? FLOAT(at) : found * scale);
}
