// Each part of a row of n elements to one number; rows are (outer, n, inner), the result is (outer, parts, inner).
{
    INCLUDE taken
    const int i = GLOBAL_ID(0);
    if (i >= count) return;
    const int column = i % inner;
    const int first = i / inner % parts * part_length;
    const int last = IMIN(first + part_length, n);
    const int start = i / inner / parts * n * inner + column;
    HELD found = TAKEN(start + first * inner);
#if KIND < 4
    INCLUDE joined
    for (int from = first + 1; from < last; from += IN_A_ROW) {
        HELD part = TAKEN(start + from * inner);
        for (int k = from + 1; k < IMIN(from + IN_A_ROW, last); ++k) {
            const HELD x = TAKEN(start + k * inner);
            part = JOINED(part, x);
        }
        found = JOINED(found, part);
    }
    STORE_dst(i, found * scale);
#else
    int at = first;
    for (int k = first + 1; k < last; ++k) {
        const HELD x = LOAD_src(start + k * inner);
        if (KIND == 4 ? x > found : KIND == 5 ? x < found : KIND == 6 ? x >= found : x <= found) {
            found = x;
            at = k;
        }
    }
    STORE_dst(i, FLOAT(at));
#endif
}
