                const int row_at = at % TILE_ROWS;
                const int depth_at = at / TILE_ROWS;
