    WIDE4 value = TO_WIDE4(ROW(from + column));
#if HALF4 > 0
    const int half_column = column % HALF4;
    const int beside_column = column < HALF4 ? column + HALF4 : column < 2 * HALF4 ? half_column : column;
    WIDE4 beside = TO_WIDE4(ROW(from + beside_column));
#endif
#if NORMED
#ifndef INVERSE_KNOWN
    WIDE4 squares = WIDE_SPLAT(0.0f);
    for (int d = 0; d < DEPTH4; ++d) {
        const WIDE4 part = TO_WIDE4(ROW(from + d));
        squares = MAD(part, part, squares);
    }
    const WIDE4 inverse = WIDE_SPLAT(1.0f / SQRT((squares.x + squares.y + squares.z + squares.w) / FLOAT(4 * DEPTH4) + epsilon));
#endif
    value *= inverse * TO_WIDE4(SCALE(column));
#if HALF4 > 0
    beside *= inverse * TO_WIDE4(SCALE(beside_column));
#endif
#endif
#if HALF4 > 0
    if (column < 2 * HALF4) {
#if BY_PLACE
        const int at = IMIN(IMAX(place, 0), places - 1) * HALF4 + half_column;
#else
        const int at = (image % places * rows + row) * HALF4 + half_column;
#endif
        const WIDE4 turn = TO_WIDE4(LOAD_sines(at)) * beside;
        value = value * TO_WIDE4(LOAD_cosines(at)) + (column < HALF4 ? -turn : turn);
    }
#endif
