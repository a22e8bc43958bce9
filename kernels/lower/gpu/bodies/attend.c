// A work-group a row of a head: softmax(q k) v over the places of a cache that it sees (kernels/ir/cache.py), GROUP a turn. Of
// the result a work-item has one vector, of every one of PARTS places; sums are scaled anew where the maximum grows.
#define ROW(at) LOAD_src(at)
#define SCALE(at) LOAD_norm(at)
{
    const int me = LOCAL_ID(0);
    const int row = GROUP_ID(0);
    const int head = GROUP_ID(1);
    const int image = GROUP_ID(2);
    const int place = INT32(LOAD_ends(image)) + 1 - rows + row;
    const int own = IMIN(IMAX(place, 0), capacity - 1);
    const int from = src_start + image * src_batch + head * src_head + row * src_row;
    for (int column = me; column < DEPTH4; column += GROUP) {
INCLUDE turned_row
        tile_q[column] = value * WIDE_SPLAT(scale);
    }
    BARRIER;
    const int plane = (image * kept + head / (heads / kept)) * capacity;
    const int mine = me % COLUMNS4;
    const int part = me / COLUMNS4;
    WIDE4 sum = WIDE_SPLAT(0.0f);
    float most = -3.4028234e38f;
    float whole = 0.0f;
    for (int first = window > 0 ? IMAX(own - window + 1, 0) : 0; first <= own; first += GROUP) {
        const int there = IMIN(GROUP, own - first + 1);
        float score = -3.4028234e38f;
        if (me < there) {
            WIDE4 dots = WIDE_SPLAT(0.0f);
            for (int d = 0; d < DEPTH4; ++d) dots = MAD(tile_q[d], TO_WIDE4(LOAD_k((plane + first + me) * DEPTH4 + d)), dots);
            score = dots.x + dots.y + dots.z + dots.w;
#if CAPPED
            score = softcap - 2.0f * softcap / (EXP(2.0f * score / softcap) + 1.0f);
#endif
        }
        meeting[me] = score;
        BARRIER;
        float now = most;
        for (int i = 0; i < there; ++i) now = MAX(now, meeting[i]);
        const float factor = EXP(most - now);
        most = now;
        weight[me] = me < there ? EXP(score - now) : 0.0f;
        BARRIER;
        sum *= WIDE_SPLAT(factor);
        whole *= factor;
        if (part < PARTS) {
            for (int i = part; i < there; i += PARTS) {
                sum = MAD(WIDE_SPLAT(weight[i]), TO_WIDE4(LOAD_v((plane + first + i) * COLUMNS4 + mine)), sum);
                whole += weight[i];
            }
        }
        BARRIER;
    }
    sums[me] = sum;
    meeting[me] = whole;
    BARRIER;
    if (me < COLUMNS4) {
        for (int p = 1; p < PARTS; ++p) {
            sum += sums[p * COLUMNS4 + me];
            whole += meeting[p * COLUMNS4 + me];
        }
        STORE_dst(((image * rows + row) * heads + head) * COLUMNS4 + me, sum / WIDE_SPLAT(whole));
    }
}
