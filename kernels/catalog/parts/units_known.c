    // Which work-item holds what of a right operand is the driver's affair in Vulkan. Where it is not what `fragments` in
    // unit_fragments.py takes it for, every result is NaN, not another number.
    float unlike = 0.0f;
    {
        const int number = LANE / 2 * 16 + LANE % 2 * 8;
        PUT_HALVES(tile, SUBGROUP * 32 + LANE, WIDE_VEC4(number, number + 1, number + 2, number + 3), WIDE_VEC4(number + 4, number + 5, number + 6, number + 7));
        SUBGROUP_BARRIER;
        MATRIX_RIGHT known;
        LOAD_COLUMNS(known, tile, SUBGROUP * 32, 2);
        UNROLL for (int e = 0; e < 8; ++e) {
            if (ELEMENT(known, e) != FLOAT((LANE / 4 + e / 4 * 8) * 16 + LANE % 4 * 2 + e / 2 % 2 * 8 + e % 2)) unlike = NOT_A_NUMBER;
        }
        BARRIER;
    }
