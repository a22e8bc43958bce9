// GX x GY work-items, each RV vectors of four rows x CV vectors of four columns. Both operands pass through local memory,
// DEPTH vectors of four deep a stage, in two sides that alternate: while one is read the other is filled, with one barrier
// a stage. In local memory the left operand lies with its rows side by side, so that both are read as vectors along the
// result; its pitch is odd, so that eight neighbours write eight banks. WHOLE: sizes are multiples of the tile.
// AHEAD: the first stage is fetched ahead of the loop, which then has no branches.
{
    const int me = LOCAL_ID(0);
    const int tx = me / 32 % (GX / 8) * 8 + me % 8;  // 32 neighbours are 8 x 4: few distinct vectors are read at once
    const int ty = me / 32 / (GX / 8) * 4 + me % 32 / 8;
    const int first_row = GROUP_ID(1) * 4 * TILE_ROWS4;
    const int first_column = GROUP_ID(0) * TILE_COLUMNS4;
    const int batch = GROUP_ID(2);
    const int stages = (depth + TILE_DEPTH - 1) / TILE_DEPTH;

    WIDE4 sums[SUMS];
    UNROLL for (int i = 0; i < SUMS; ++i) sums[i] = WIDE_SPLAT(0.0f);
    CHUNK_SUMS

    FLOAT4 next[FETCHED];
    int from[FETCHES];
    int to[FETCHES];
    int fetch_k[FETCHES];    // of WHOLE 0: where the square starts
    int fetch_row[FETCHES];
    UNROLL for (int f = 0; f < FETCHES; ++f) {
        const int square = me + f * GROUP;
        const int other = square - FETCHES_A;
        fetch_row[f] = 0;
        if (square < FETCHES_A) {
            const int k4 = square / (2 * TILE_ROWS4) * 2 + square % 2;
            const int row4 = square / 2 % TILE_ROWS4;
            fetch_row[f] = first_row + 4 * row4;
            fetch_k[f] = 4 * k4;
            from[f] = a_start + batch * a_batch + k4;
            if (WHOLE != 0) from[f] += fetch_row[f] * a_stride;
            to[f] = 4 * k4 * PITCH + row4;
        } else {
            const int k4 = other / TILE_COLUMNS4;
            const int column = first_column + other % TILE_COLUMNS4;
            fetch_k[f] = 4 * k4;
            from[f] = batch * b_batch + 4 * k4 * b_stride + (WHOLE != 0 ? column : IMIN(column, columns4 - 1));
            to[f] = 4 * k4 * TILE_COLUMNS4 + other % TILE_COLUMNS4;
        }
    }
    if (AHEAD == 0) {
        for (int stage = 0; stage <= stages; ++stage) {
            if (stage < stages) {
    INCLUDE fetch
    INCLUDE advance
            }
            if (stage > 0) {
                const int a_at = (stage - 1) % 2 * HALF_A + ty;
                const int b_at = (stage - 1) % 2 * HALF_B + tx;
    INCLUDE stage
            }
            if (stage < stages) {
                const int fill = stage % 2;
    INCLUDE put
            }
            BARRIER;
        }
    } else {
        {
            const int fill = 0;
    INCLUDE fetch
    INCLUDE put
        }
        BARRIER;
        for (int stage = 0; stage < stages; ++stage) {
            if (stage + 1 < stages) {  // the last stage fetches again what it has, which nobody reads
    INCLUDE advance
            }
    INCLUDE fetch
            const int a_at = stage % 2 * HALF_A + ty;
            const int b_at = stage % 2 * HALF_B + tx;
    INCLUDE stage
            const int fill = (stage + 1) % 2;
    INCLUDE put
            BARRIER;
        }
    }
    FOLD_REST
    UNROLL for (int c = 0; c < CV; ++c) {
        const int column = first_column + tx + c * GX;
        if (WHOLE != 0 || column < columns4) {
            WIDE4 bias_here = WIDE_SPLAT(0.0f);
            if (has_bias != 0) bias_here = TO_WIDE4(LOAD_bias(column));
            UNROLL for (int r = 0; r < RV; ++r) {
                const int row4 = first_row + 4 * (ty + r * GY);
                WIDE4 others[4];
                UNROLL for (int i = 0; i < 4; ++i) {
                    others[i] = WIDE_SPLAT(0.0f);
                    BESIDE(others[i], dst_start + batch * dst_batch + IMIN(row4 + i, rows - 1) * dst_stride + column);
                }
                UNROLL for (int i = 0; i < 4; ++i) {
                    const int row = row4 + i;
                    if (WHOLE != 0 || row < rows) {
                        const WIDE4 sum = sums[(r * 4 + i) * CV + c] + bias_here;
                        const WIDE4 other = others[i];
                        STORE_dst(dst_start + batch * dst_batch + row * dst_stride + column, ACTIVATE(sum));
                    }
                }
            }
        }
    }
}
