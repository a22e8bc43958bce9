            const int iy = oy * sh - pad_t + ky * dh;
            const bool row_inside = INSIDE(iy, h);
            const int row = plane + CLAMPED(iy, h) * w;
