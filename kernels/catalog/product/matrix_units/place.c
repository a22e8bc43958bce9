                const int row_at = at / TILE_DEPTH8;
                const int depth_at = at % TILE_DEPTH8;
