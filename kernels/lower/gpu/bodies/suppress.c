// One work-group a row: it goes through the boxes in their order, GROUP at a time, each held against all that were taken
// before, and takes those that none of them overlaps by more than `overlap` of what both cover.
#define UPPER(a, b) (((a) > (b) || IS_NAN1(a)) ? (a) : (b))
#define LOWER(a, b) (((a) < (b) || IS_NAN1(a)) ? (a) : (b))
#define OVER(result, y0, x0, y1, x1, extent) { \
    const float tall = UPPER(LOWER(high_y, (y1)) - UPPER(low_y, (y0)), 0.0f); \
    const float wide = UPPER(LOWER(high_x, (x1)) - UPPER(low_x, (x0)), 0.0f); \
    const float covered = tall * wide; \
    const float both = area + (extent); \
    result = DIVIDE(covered, UPPER(both - covered, 1.17549435e-38f)) > overlap; }
{
    {
#ifdef __OPENCL_VERSION__
#pragma OPENCL FP_CONTRACT OFF
#endif
        const int me = LOCAL_ID(0);
        const int row = GROUP_ID(0);
        const int base = row / (rows / batch) * n;
        const int last = IMIN(TO_INT(LOAD_valid(row)), length);
        int count = 0;
        for (int first = 0; first < last && count < rounds; first += GROUP) {
            int place = 0;
            if (first + me < last) place = IMAX(IMIN(TO_INT(LOAD_order(row * length + first + me)), n - 1), 0);
            const int at = 5 * (base + place);
            const float low_y = LOAD_boxes(at);
            const float low_x = LOAD_boxes(at + 1);
            const float high_y = LOAD_boxes(at + 2);
            const float high_x = LOAD_boxes(at + 3);
            const float area = LOAD_boxes(at + 4);
            bool stays = first + me < last;
            for (int k = 0; k < count && stays; ++k) {
                const int other = 5 * (base + TO_INT(taken[k]));
                bool over;
                OVER(over, LOAD_boxes(other), LOAD_boxes(other + 1), LOAD_boxes(other + 2), LOAD_boxes(other + 3),
                     LOAD_boxes(other + 4));
                stays = !over;
            }
            waiting[me] = stays ? 1.0f : 0.0f;
            near[me] = low_y;
            near[GROUP + me] = low_x;
            near[2 * GROUP + me] = high_y;
            near[3 * GROUP + me] = high_x;
            near[4 * GROUP + me] = area;
            BARRIER;
            for (int k = 0; k < GROUP; ++k) {
                if (waiting[k] != 0.0f && count < rounds) {
                    if (me == k) {
                        taken[count] = FLOAT(place);
                        STORE_dst(row * rounds + count, FLOAT(place));
                    } else if (me > k && stays) {
                        bool over;
                        OVER(over, near[k], near[GROUP + k], near[2 * GROUP + k], near[3 * GROUP + k], near[4 * GROUP + k]);
                        if (over) {
                            stays = false;
                            waiting[me] = 0.0f;
                        }
                    }
                    ++count;
                }
                BARRIER;
            }
        }
        for (int k = count + me; k < rounds; k += GROUP) STORE_dst(row * rounds + k, -1.0f);
    }
}
