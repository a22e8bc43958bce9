// DOWN warpgroups of 128 work-items multiply FR times 64 rows by COLUMNS columns each, straight from local memory, by
// NVIDIA's `wgmma`. STAGES of both operands lie there: one is multiplied while the others are on their way (`cp.async`).
// Rows of the left operand, and columns of the right one where it is TURNED, are lines of SPAN bytes; else the right
// operand lies in blocks of 64 columns. Vectors of 16 bytes are swizzled within eight lines, as `wgmma` reads them.
// EIGHTS_A: rows of the left operand begin at multiples of eight halves.
{
    const int me = LOCAL_ID(0);
    const int warpgroup = me / 128;
    const int first_row = GROUP_ID(1) * TILE_ROWS;
    const int first_column = GROUP_ID(0) * COLUMNS;
    const int batch = GROUP_ID(2);
    const ulong from_a = (ulong)a + 8 * (ulong)(a_start + batch * a_batch);
    const ulong from_b = (ulong)b + (TURNED ? 16 : 8) * (ulong)(batch * b_batch);
    const uint base = (uint)(size_t)tile;
    const int stages = (depth + TILE_DEPTH - 1) / TILE_DEPTH;
    const int a_row = me / DEPTH8;
    const int a_depth = me % DEPTH8;
    const uint a_to = SWIZZLED(a_row * SPAN + a_depth * 16, SPAN);
#if TURNED
    const int b_row = a_row;
    const int b_depth = a_depth;
    const uint b_to = a_to;
#else
    const int b_row = me / (COLUMNS / 8);
    const int b_column = me % (COLUMNS / 8);
    const uint b_to = b_column / 8 * (TILE_DEPTH * 128) + SWIZZLED(b_row * 128 + b_column % 8 * 16, 128);
#endif
    int next_stage = 0;
    uint fill = base;
    SUMS_DECLARED
    for (int ahead = 0; ahead < STAGES - AHEAD; ++ahead) {
    INCLUDE fetch
    }
    uint read = base;
    for (int stage = 0; stage < stages; ++stage) {
        WAIT_FOR_COPIES;
        FENCE;
        BARRIER;
        MULTIPLY_STAGE
        WAIT_FOR_PRODUCTS;
    INCLUDE fetch
        read = read == base + (STAGES - 1) * SIDE ? base : read + SIDE;
    }
    WAIT_FOR_ALL_PRODUCTS;
    // A warp's sums of 16 rows go through local memory: there neighbours find neighbouring columns of a row.
    const int lane = me % 32;
    __local float2* const pairs = (__local float2*)(tile + me / 32 * STRIP);
    UNROLL for (int f = 0; f < FR; ++f) {
        BARRIER;
        UNROLL for (int j = 0; j < EIGHTS; ++j) {
            pairs[2 * (lane / 4 * PITCH_STRIP + 2 * j) + lane % 4] = (float2)(SUM(f, j, 0), SUM(f, j, 1));
            pairs[2 * ((lane / 4 + 8) * PITCH_STRIP + 2 * j) + lane % 4] = (float2)(SUM(f, j, 2), SUM(f, j, 3));
        }
        WARP_BARRIER;
        const int strip_row = first_row + (warpgroup * FR + f) * 64 + me / 32 % 4 * 16;
        for (int first = lane; first < 4 * COLUMNS; first += 256) {  // all that is read is on its way before the first store
            WIDE4 kept[8];
            WIDE4 others[8];
            UNROLL for (int t = 0; t < 8; ++t) {
    INCLUDE finish_place
                kept[t] = as_float4(tile[me / 32 * STRIP + at / (COLUMNS / 4) * PITCH_STRIP + at % (COLUMNS / 4)]);
                others[t] = WIDE_SPLAT(0.0f);
                if (has_bias != 0) kept[t] += TO_WIDE4(LOAD_bias(IMIN(column, columns4 - 1)));
                BESIDE(others[t], dst_start + batch * dst_batch + IMIN(row, rows - 1) * dst_stride + IMIN(column, columns4 - 1));
            }
            UNROLL for (int t = 0; t < 8; ++t) {
    INCLUDE finish_place
                const WIDE4 sum = kept[t];
                const WIDE4 other = others[t];
                if (row < rows && column < columns4) {
                    STORE_dst(dst_start + batch * dst_batch + row * dst_stride + column, ACTIVATE(sum));
                }
            }
        }
    }
}
