                const int row_at = SPREAD(at / TILE_DEPTH8, SPREAD_A);
                const int depth_at = at % TILE_DEPTH8;
