// A work-group a head: what the splits of `attend_token` found, scaled by the largest score of all.
{
    const int me = LOCAL_ID(0);
    const int head = GROUP_ID(0);
    const int image = GROUP_ID(1);
INCLUDE split_places
    const int used = (own - lowest + share) / share;
    const int column = me % COLUMNS4;
    const int part = me / COLUMNS4;
    const int from = (image * heads + head) * SPLITS;
    for (int i = me; i < used; i += GROUP) {
        const WIDE4 found = LOAD_parts((from + i) * (COLUMNS4 + 1) + COLUMNS4);
        scores[i] = found.x;
        weight[i] = found.y;
    }
    BARRIER;
    float most = -3.4028234e38f;
    for (int i = 0; i < used; ++i) most = MAX(most, scores[i]);
    WIDE4 sum = WIDE_SPLAT(0.0f);
    float whole = 0.0f;
    if (part < PARTS) {
        for (int i = part; i < used; i += PARTS) {
            const float factor = EXP(scores[i] - most);
            sum = MAD(WIDE_SPLAT(factor), LOAD_parts((from + i) * (COLUMNS4 + 1) + column), sum);
            whole += factor * weight[i];
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
