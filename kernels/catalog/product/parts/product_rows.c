            UNROLL for (int r = 0; r < ROWS; ++r) {
                VECTOR sum = chunk[r * COLUMNS + c];
                sum = MAD(VSPLAT(left[r].x), b0, sum);
                sum = MAD(VSPLAT(left[r].y), b1, sum);
                sum = MAD(VSPLAT(left[r].z), b2, sum);
                chunk[r * COLUMNS + c] = MAD(VSPLAT(left[r].w), b3, sum);
            }
