// One work-group a row of `columns4` vectors, of which a work-item holds EACH, with all that it needs of scale and shift: mean,
// mean squared distance from it, then each element. Each work-item adds up what all have found. ADDED: something is added to
// the result. UNCENTRED: no mean is taken off. NEXT: the result's own RMS norm is `next`.
{
#ifdef ADDED
#define ENDED(v, i) ((v) + TO_WIDE4(LOAD_residual(row + (i))))
#else
#define ENDED(v, i) (v)
#endif
    const int me = LOCAL_ID(0);
    const int row = GROUP_ID(0) * columns4;
    const float count = FLOAT(4 * columns4);
    WIDE4 held[EACH];
    WIDE4 scales[EACH];
    WIDE4 shifts[EACH];
    UNROLL for (int e = 0; e < EACH; ++e) held[e] = TO_WIDE4(LOAD_src(row + IMIN(me + e * KY, columns4 - 1)));
    UNROLL for (int e = 0; e < EACH; ++e) {
        scales[e] = TO_WIDE4(LOAD_scale(IMIN(me + e * KY, columns4 - 1)));
        shifts[e] = TO_WIDE4(LOAD_shift(IMIN(me + e * KY, columns4 - 1)));
    }
    WIDE4 own = WIDE_SPLAT(0.0f);
    WIDE4 all = WIDE_SPLAT(0.0f);
#ifdef UNCENTRED
    const WIDE4 mean = all;
#else
    UNROLL for (int e = 0; e < EACH; ++e) {
        if (me + e * KY < columns4) own += held[e];
    }
    SET_LANE(partial, me / 4, me % 4, own.x + own.y + own.z + own.w);
    BARRIER;
    UNROLL for (int i = 0; i < QUARTERS; ++i) all += partial[i];
    const WIDE4 mean = WIDE_SPLAT((all.x + all.y + all.z + all.w) / count);
    own = WIDE_SPLAT(0.0f);
#endif
    UNROLL for (int e = 0; e < EACH; ++e) {
        held[e] -= mean;
        if (me + e * KY < columns4) own = MAD(held[e], held[e], own);
    }
    SET_LANE(partial, QUARTERS + me / 4, me % 4, own.x + own.y + own.z + own.w);
    BARRIER;
    all = WIDE_SPLAT(0.0f);
    UNROLL for (int i = 0; i < QUARTERS; ++i) all += partial[QUARTERS + i];
    const float root = SQRT((all.x + all.y + all.z + all.w) / count + epsilon);
    const WIDE4 inverse = WIDE_SPLAT(1.0f / (root < least ? least : root));
    UNROLL for (int e = 0; e < EACH; ++e) {
        if (me + e * KY < columns4) {
            held[e] = ENDED(MAD(held[e] * inverse, scales[e], shifts[e]), me + e * KY);
            STORE_dst(row + me + e * KY, held[e]);
        }
    }
#ifdef NEXT
    own = WIDE_SPLAT(0.0f);
    UNROLL for (int e = 0; e < EACH; ++e) {
        scales[e] = TO_WIDE4(LOAD_next_scale(IMIN(me + e * KY, columns4 - 1)));
        if (me + e * KY < columns4) own = MAD(held[e], held[e], own);
    }
    SET_LANE(partial, me / 4, me % 4, own.x + own.y + own.z + own.w);
    BARRIER;
    all = WIDE_SPLAT(0.0f);
    UNROLL for (int i = 0; i < QUARTERS; ++i) all += partial[i];
    const WIDE4 next_inverse = WIDE_SPLAT(1.0f / SQRT((all.x + all.y + all.z + all.w) / count + next_epsilon));
    UNROLL for (int e = 0; e < EACH; ++e) {
        if (me + e * KY < columns4) STORE_next(row + me + e * KY, held[e] * next_inverse * scales[e]);
    }
#endif
}
