// One work-group sorts a run of BLOCK elements of a row of n, by a bitonic network in local memory; `keep` stay.
// Of rows that are one run the results are written; of longer ones keys, which fall from the best to the worst, and places.
{
    const int me = LOCAL_ID(0);
    const int row = GROUP_ID(0) / runs;
    const int first = GROUP_ID(0) % runs * BLOCK;
    for (int i = me; i < BLOCK; i += GROUP) {
        HELD key = LOWEST;
        if (first + i < n) {
            const HELD x = LOAD_src(row * n + first + i);
            key = IS_NAN1(x) ? LOWEST : LARGEST == 1 ? x : -x;
        }
        keys[i] = key;
        places[i] = FLOAT(first + i);
    }
    BARRIER;
    for (int part = 2; part <= BLOCK; part *= 2) {
        for (int apart = part / 2; apart > 0; apart /= 2) {
            for (int i = me; i < BLOCK / 2; i += GROUP) {
                const int a = 2 * i - (i & (apart - 1));
                const int b = a + apart;
                const HELD key_a = keys[a];
                const HELD key_b = keys[b];
                const float place_a = places[a];
                const float place_b = places[b];
                const bool before = key_a > key_b || (key_a == key_b && place_a < place_b);
                if (before == ((a & part) != 0)) {
                    keys[a] = key_b;
                    keys[b] = key_a;
                    places[a] = place_b;
                    places[b] = place_a;
                }
            }
            BARRIER;
        }
    }
    for (int i = me; i < keep; i += GROUP) {
#if LAST
        STORE_found(row * keep + i, LOAD_src(row * n + IMIN(TO_INT(places[i]), n - 1)));
#else
        STORE_found(GROUP_ID(0) * keep + i, keys[i]);
#endif
        STORE_at(GROUP_ID(0) * keep + i, places[i]);
    }
}
