// One work-group a row of n elements that lie side by side: they are shared out and meet in local memory.
{
#if KIND == 0
#define JOINED(a, b) ((a) + (b))
#elif KIND == 1
#define JOINED(a, b) (((b) > (a) || (b) != (b)) ? (b) : (a))
#elif KIND == 2
#define JOINED(a, b) (((b) < (a) || (b) != (b)) ? (b) : (a))
#else
#define JOINED(a, b) ((a) * (b))
#endif
    const int me = LOCAL_ID(0);
    const int start = GROUP_ID(0) * n;
    float found = LOAD_src(start + me);
    for (int k = me + KY; k < n; k += KY) {
        const float x = LOAD_src(start + k);
        found = JOINED(found, x);
    }
    partial[me] = found;
    BARRIER;
    for (int half_way = KY / 2; half_way > 0; half_way /= 2) {
        if (me < half_way) partial[me] = JOINED(partial[me], partial[me + half_way]);
        BARRIER;
    }
    if (me == 0) STORE_dst(GROUP_ID(0), partial[0] * scale);
}
