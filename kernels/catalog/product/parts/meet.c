    const int found = me % OUTPUTS;  // of so many vectors; PIECES work-items add up each first
    const int piece = me / OUTPUTS;
    WIDE4 whole[MATRICES];
#if NORMED
    if (me % CX == 0) lengths[ky] = squares.x + squares.y + squares.z + squares.w;
#endif
    UNROLL for (int m = 0; m < MATRICES; ++m) {
        UNROLL for (int n = 0; n < WIDTH; ++n) partial[n * GROUP + me] = sums[m * WIDTH + n];
        BARRIER;
        if (piece < PIECES) {
            WIDE4 some = WIDE_SPLAT(0.0f);
            UNROLL for (int meeting = 0; meeting < MEETINGS; ++meeting) {
                const int down = piece + meeting * PIECES;
                if (down < KY) some += partial[found / CX * GROUP + down * CX + found % CX];
            }
            met[me] = some;
        }
#if NORMED
        if (m == 0 && me < PIECES) {
            float square = 0.0f;
            UNROLL for (int meeting = 0; meeting < MEETINGS; ++meeting) {
                if (me + meeting * PIECES < KY) square += lengths[me + meeting * PIECES];
            }
            squared[me] = square;
        }
#endif
        BARRIER;
        whole[m] = WIDE_SPLAT(0.0f);
        if (piece == 0) {
            UNROLL for (int p = 0; p < PIECES; ++p) whole[m] += met[p * OUTPUTS + me];
        }
    }
#if NORMED
    float square = 0.0f;
    UNROLL for (int p = 0; p < PIECES; ++p) square += squared[p];
    const WIDE4 inverse = WIDE_SPLAT(1.0f / SQRT(square / FLOAT(depth) + epsilon));
    UNROLL for (int m = 0; m < MATRICES; ++m) whole[m] *= inverse;
#endif
    const int column = (GROUP_ID(0) * CX + found % CX) * WIDTH + found / CX;
    if (piece == 0 && column < columns4) {
        WIDE4 sum = whole[0];
        if (has_bias != 0) sum += TO_WIDE4(LOAD_bias(column));
#if MATRICES == 2
        const WIDE4 other = whole[1];
#endif
        STORE_dst(dst_start + row * dst_stride + column, ACTIVATE(sum));
    }
