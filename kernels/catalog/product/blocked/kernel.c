// One output a work-item, a block of BY rows x BX columns a work-group; blocks of both operands pass through local memory,
// BK deep (Pradana, 2018).
{
    const int me = LOCAL_ID(0);
    const int tx = me % BX;
    const int ty = me / BX;
    const int column = GROUP_ID(0) * BX + tx;
    const int row = GROUP_ID(1) * BY + ty;
    const int batch = GROUP_ID(2);
    const int a_at = 4 * (a_start + batch * a_batch);
    const int b_at = 4 * batch * b_batch;
    float sum = 0.0f;
    for (int k0 = 0; k0 < depth; k0 += BK) {
        for (int i = me; i < BLOCK_A; i += GROUP) {
            const int r = GROUP_ID(1) * BY + i / BK;
            const int k = k0 + i % BK;
            float value = 0.0f;
            if (r < rows && k < depth) value = LOAD_a(a_at + 4 * r * a_stride + k);
            tile_a[i] = value;
        }
        for (int i = me; i < BLOCK_B; i += GROUP) {
            const int c = GROUP_ID(0) * BX + i % BX;
            const int k = k0 + i / BX;
            float value = 0.0f;
            if (c < 4 * columns4 && k < depth) value = LOAD_b(b_at + 4 * k * b_stride + c);
            tile_b[i] = value;
        }
        BARRIER;
        UNROLL for (int k = 0; k < BK; ++k) sum = MAD(tile_a[ty * BK + k], tile_b[k * BX + tx], sum);
        BARRIER;
    }
    if (row < rows && column < 4 * columns4) {
        if (has_bias != 0) sum += LOAD_bias(column);
        STORE_dst(4 * (dst_start + batch * dst_batch + row * dst_stride) + column, ACTIVATE1(sum));
    }
}
