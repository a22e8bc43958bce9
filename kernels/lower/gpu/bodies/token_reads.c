        if (last >= 0) {
            UNROLL for (int j = 0; j < KEYS; ++j) {
                keys[j] = LOAD_key_cache((plane + IMIN(first + me / LANES, last)) * DEPTH4 + IMIN(lane + j * LANES, DEPTH4 - 1));
            }
            UNROLL for (int j = 0; j < VALUES; ++j) {
                values[j] = LOAD_value_cache((plane + IMIN(first + part + j * PARTS, last)) * COLUMNS4 + column);
            }
        }
