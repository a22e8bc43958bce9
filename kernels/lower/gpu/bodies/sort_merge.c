// Each element of two sorted runs of `length` goes to its place in both together, of which `keep` stay: a stable merge.
// A last run without a partner is followed by elements that are worse than any. KEYS and places as sort_block writes them.
{
    const int i = GLOBAL_ID(0);
    if (i >= count) return;
    const int pairs = (runs + 1) / 2;
    const int own = i % (2 * length);
    const int pair = i / (2 * length) % pairs;
    const int row = i / (2 * length) / pairs;
    const int left = (row * runs + 2 * pair) * length;
    const bool is_alone = 2 * pair + 1 == runs;
    const bool is_right = own >= length;
    HELD key = LOWEST;
    float place = FLOAT(n);
    int rank = own;
    if (!(is_alone && is_right)) {
        key = LOAD_keys(left + own);
        place = LOAD_places(left + own);
    }
    if (!is_alone) {
        const int other = is_right ? left : left + length;
        int low = 0;
        int high = length;
        while (low < high) {
            const int middle = (low + high) / 2;
            const HELD rival = LOAD_keys(other + middle);
            if (rival > key || (is_right && rival == key)) low = middle + 1;
            else high = middle;
        }
        rank = (is_right ? own - length : own) + low;
    }
    if (rank < keep) {
        const int target = (row * pairs + pair) * keep + rank;
#if LAST
        STORE_found(target, LOAD_src(row * n + IMIN(TO_INT(place), n - 1)));
#else
        STORE_found(target, key);
#endif
        STORE_at(target, place);
    }
}
