// A work-group a head: what the splits of `attend_token` found, scaled by the largest score of all. All of it is on its way before it
// is known which splits have places: what the others left is not looked at.
{
    const int me = LOCAL_ID(0);
    const int head = GROUP_ID(0);
    const int image = GROUP_ID(1);
    const int column = me % COLUMNS4;
    const int part = me / COLUMNS4;
    const int from = (image * heads + head) * SPLITS;
    WIDE4 found[FOUND];
    UNROLL for (int j = 0; j < FOUND; ++j) {
        found[j] = LOAD_parts((from + IMIN(part + j * PARTS, SPLITS - 1)) * (COLUMNS4 + 1) + column);
    }
INCLUDE split_places
    const int used = (own - lowest + share) / share;
    for (int i = me; i < SPLITS; i += GROUP) {
        const WIDE4 ends_of = LOAD_parts((from + i) * (COLUMNS4 + 1) + COLUMNS4);
        scores[i] = i < used ? ends_of.x : -3.4028234e38f;
        weight[i] = ends_of.y;
    }
    BARRIER;
    float most = -3.4028234e38f;
    UNROLL for (int i = 0; i < SPLITS; ++i) most = MAX(most, scores[i]);
    WIDE4 sum = WIDE_SPLAT(0.0f);
    float whole = 0.0f;
    UNROLL for (int j = 0; j < FOUND; ++j) {
        const int split = part + j * PARTS;
        if (part < PARTS && split < used) {
            const float factor = EXP(scores[split] - most);
            sum = MAD(WIDE_SPLAT(factor), found[j], sum);
            whole += factor * weight[split];
        }
    }
    held[me] = sum;
    meeting[me] = whole;
    BARRIER;
    if (me < COLUMNS4) {
        for (int p = 1; p < PARTS; ++p) {
            sum += held[p * COLUMNS4 + me];
            whole += meeting[p * COLUMNS4 + me];
        }
        STORE_dst((image * heads + head) * COLUMNS4 + me, sum / WIDE_SPLAT(whole));
    }
}
