    const int blocks = (ow + PIXELS - 1) / PIXELS;
    const int block = GLOBAL_ID(0);
    LEAVE_IF(block >= blocks * oh);
    const int oy = block / blocks;
    const int ox = (block - oy * blocks) * PIXELS;
