    // Sums of rows are products with ones, and sums of squares lie on the diagonal of rows times themselves. Of all parts
    // they make the mean of a row and the inverse of its deviation.
    UNROLL for (int r = 0; r < FR; ++r) {
        const int place = (part * DOWN + down) * FR * UNIT_ROWS + r * UNIT_ROWS + LANE;
        STORE_MATRIX(squares[r], tile, SUBGROUP * STRIP, PITCH_STRIP);
        SUBGROUP_BARRIER;
        const WIDE4 four = FROM_BITS(tile[SUBGROUP * STRIP + LANE % 16 * PITCH_STRIP + LANE % 16 / 4]);
        const float square = LANE % 4 == 0 ? four.x : LANE % 4 == 1 ? four.y : LANE % 4 == 2 ? four.z : four.w;
        SUBGROUP_BARRIER;
        STORE_MATRIX(totals[r], tile, SUBGROUP * STRIP, PITCH_STRIP);
        SUBGROUP_BARRIER;
        if (across == 0 && LANE < 16) {
            statistics[2 * place] = FROM_BITS(tile[SUBGROUP * STRIP + LANE * PITCH_STRIP]).x;
            statistics[2 * place + 1] = square;
        }
        SUBGROUP_BARRIER;
    }
    BARRIER;
    for (int line = me; line < TILE_ROWS; line += GROUP) {
        float total = 0.0f;
        float square = 0.0f;
        UNROLL for (int p = 0; p < PARTS; ++p) {
            total += statistics[2 * (p * TILE_ROWS + line)];
            square += statistics[2 * (p * TILE_ROWS + line) + 1];
        }
        const float mean = total / FLOAT(depth);
        statistics[2 * (PARTS * TILE_ROWS + line)] = mean;
        statistics[2 * (PARTS * TILE_ROWS + line) + 1] = 1.0f / SQRT(MAX(square / FLOAT(depth) - mean * mean, 0.0f) + epsilon);
    }
    BARRIER;
