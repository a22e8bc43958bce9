    // Which work-item holds what of a matrix is the driver's affair in Vulkan. Where it is not as `fragments` in
    // units/fragments.py says, every result is NaN, not another number. Work-groups that look are as many as reach every row: what
    // is done once takes long to be read.
    float unlike = 0.0f;
    if (LOOK_HERE) {
        const int number = LANE / 2 * 16 + LANE % 2 * 8;
        PUT_HALVES(tile, SUBGROUP * 32 + LANE, WIDE_VEC4(number, number + 1, number + 2, number + 3), WIDE_VEC4(number + 4, number + 5, number + 6, number + 7));
        SUBGROUP_BARRIER;
        MATRIX_RIGHT known;
        LOAD_COLUMNS(known, tile, SUBGROUP * 32, 2);
        UNROLL for (int e = 0; e < 8; ++e) {
            if (ELEMENT(known, e) != FLOAT((LANE / 4 + e / 4 * 8) * 16 + LANE % 4 * 2 + e / 2 % 2 * 8 + e % 2)) unlike = NOT_A_NUMBER;
        }
#if SIDES > 4
        MATRIX_LEFT other;
        LOAD_LEFT(other, tile, SUBGROUP * 32, 2);
        UNROLL for (int e = 0; e < 8; ++e) {
            if (ELEMENT(other, e) != FLOAT((LANE / 4 + e / 4 * 8) * 16 + LANE % 4 * 2 + e / 2 % 2 * 8 + e % 2)) unlike = NOT_A_NUMBER;
        }
#endif
#if defined(KNOWN_SUMS) || SIDES == 4 || SIDES == 6
        BARRIER;
        tile[SUBGROUP * 64 + 2 * LANE] = TO_BITS(WIDE_VEC4(number, number + 1, number + 2, number + 3));
        tile[SUBGROUP * 64 + 2 * LANE + 1] = TO_BITS(WIDE_VEC4(number + 4, number + 5, number + 6, number + 7));
        SUBGROUP_BARRIER;
        MATRIX_SUM sum;
        LOAD_SUM(sum, tile, SUBGROUP * 64, 4);
        const WIDE4 up = SUM_UP(sum);
        const WIDE4 low = SUM_LOW(sum);
        const float first = FLOAT(LANE / 4 * 16 + LANE % 4 * 2);
        if (up != WIDE_VEC4(first, first + 1.0f, first + 8.0f, first + 9.0f)) unlike = NOT_A_NUMBER;
        if (low != WIDE_VEC4(first + 128.0f, first + 129.0f, first + 136.0f, first + 137.0f)) unlike = NOT_A_NUMBER;
#endif
        BARRIER;
    }
