// One work-group a row of `columns4` vectors: mean, mean squared distance from it, then each element. KY: 1, or 8 and more.
// ADDED: something is added to the result. UNCENTRED: no mean is taken off. NEXT: the result's own RMS norm is `next`.
{
#ifdef ADDED
#define ENDED(v, i) ((v) + TO_WIDE4(LOAD_residual(row + (i))))
#else
#define ENDED(v, i) (v)
#endif
#if KY > 1
#define TOGETHER(mine) \
    partial[me] = (mine); \
    BARRIER; \
    if (me < 8) { \
        float some = 0.0f; \
        for (int i = 0; i < KY / 8; ++i) some += partial[me * (KY / 8) + i]; \
        partial[KY + me] = some; \
    } \
    BARRIER; \
    sum = 0.0f; \
    for (int i = 0; i < 8; ++i) sum += partial[KY + i]
#else
#define TOGETHER(mine) sum = (mine)
#endif
    const int me = LOCAL_ID(0);
    const int row = GROUP_ID(0) * columns4;
    const float count = FLOAT(4 * columns4);
    float sum;
    WIDE4 own = WIDE_SPLAT(0.0f);
#ifdef UNCENTRED
    const float mean = 0.0f;
#else
    for (int first = me; first < columns4; first += IN_A_ROW * KY) {
        WIDE4 part = WIDE_SPLAT(0.0f);
        for (int i = first; i < IMIN(first + IN_A_ROW * KY, columns4); i += KY) part += TO_WIDE4(LOAD_src(row + i));
        own += part;
    }
    TOGETHER(own.x + own.y + own.z + own.w);
    const float mean = sum / count;
    own = WIDE_SPLAT(0.0f);
#endif
    for (int first = me; first < columns4; first += IN_A_ROW * KY) {
        WIDE4 part = WIDE_SPLAT(0.0f);
        for (int i = first; i < IMIN(first + IN_A_ROW * KY, columns4); i += KY) {
            const WIDE4 distance = TO_WIDE4(LOAD_src(row + i)) - WIDE_SPLAT(mean);
            part = MAD(distance, distance, part);
        }
        own += part;
    }
    TOGETHER(own.x + own.y + own.z + own.w);
    const float root = SQRT(sum / count + epsilon);
    const WIDE4 inverse = WIDE_SPLAT(1.0f / (root < least ? least : root));
#define RESULT(i) ENDED(MAD((TO_WIDE4(LOAD_src(row + (i))) - WIDE_SPLAT(mean)) * inverse, TO_WIDE4(LOAD_scale(i)), TO_WIDE4(LOAD_shift(i))), i)
    for (int i = me; i < columns4; i += KY) STORE_dst(row + i, RESULT(i));
#ifdef NEXT
    own = WIDE_SPLAT(0.0f);
    for (int first = me; first < columns4; first += IN_A_ROW * KY) {
        WIDE4 part = WIDE_SPLAT(0.0f);
        for (int i = first; i < IMIN(first + IN_A_ROW * KY, columns4); i += KY) {
            const WIDE4 found = RESULT(i);
            part = MAD(found, found, part);
        }
        own += part;
    }
    TOGETHER(own.x + own.y + own.z + own.w);
    const WIDE4 next_inverse = WIDE_SPLAT(1.0f / SQRT(sum / count + next_epsilon));
    for (int i = me; i < columns4; i += KY) STORE_next(row + i, RESULT(i) * next_inverse * TO_WIDE4(LOAD_next_scale(i)));
#endif
}
