// Two layers of single pixels: every work-group computes the whole hidden vector of its ROWS pictures anew, the inputs shared
// out over KY parts, and then its own VECTORS vectors of four outputs, the hidden vector shared out over KZ parts.
// The first of these weights are on their way while the hidden vector is computed.
// Weights: [tile of outputs][4 inputs][stacks of inputs][vectors of a tile] vectors of four outputs; the hidden layer is one tile.
{
    const int me = LOCAL_ID(0);
    int picture[ROWS];
    UNROLL for (int r = 0; r < ROWS; ++r) picture[r] = IMIN(GROUP_ID(1) * ROWS + r, pictures - 1);
    const int column = me % VECTORS;
    const int part = me / VECTORS;
    const int plane = HIDDEN * VECTORS;
    int at = GROUP_ID(0) * 4 * plane + IMIN(part, HIDDEN - 1) * VECTORS + column;
    RAW4 next[4];
    UNROLL for (int i = 0; i < 4; ++i) next[i] = LOAD_RAW_weight(at + i * plane);
    WIDE4 start = WIDE_SPLAT(0.0f);
    if (part == 0) start = TO_WIDE4(LOAD_bias(GROUP_ID(0) * VECTORS + column));
    {
        const int column = me % HIDDEN;
        const int part = me / HIDDEN;
        const int width = HIDDEN;
        const int parts = KY;
        const int plane = in_stacks * HIDDEN;
        WIDE4 start = WIDE_SPLAT(0.0f);
        if (part == 0) start = TO_WIDE4(LOAD_inner_bias(column));
        WIDE4 sums[ROWS];
        UNROLL for (int r = 0; r < ROWS; ++r) sums[r] = start;
        for (int stack = part; part < KY && stack < in_stacks; stack += KY) {
            const int at = stack * HIDDEN + column;
            const FLOAT4 w0 = LOAD_inner_weight(at);
            const FLOAT4 w1 = LOAD_inner_weight(at + plane);
            const FLOAT4 w2 = LOAD_inner_weight(at + 2 * plane);
            const FLOAT4 w3 = LOAD_inner_weight(at + 3 * plane);
            UNROLL for (int r = 0; r < ROWS; ++r) {
                const FLOAT4 value = LOAD_src(picture[r] * src_stacks + src_stack0 + stack);
    INCLUDE four_inputs
            }
        }
    INCLUDE gathered
        if (part == 0) {
            UNROLL for (int r = 0; r < ROWS; ++r) {
                WIDE4 value = ACTIVATED(sums[r], inner_activation, inner_lo, inner_hi);
                if (column == HIDDEN - 1) {  // a channel that does not exist is 0: another's infinity is not its matter
                    if (HIDDEN_LANES < 4) value.w = 0.0f;
                    if (HIDDEN_LANES < 3) value.z = 0.0f;
                    if (HIDDEN_LANES < 2) value.y = 0.0f;
                }
                hidden[r * HIDDEN + column] = value;
            }
        }
        BARRIER;
    }
    const int width = VECTORS;
    const int parts = KZ;
    WIDE4 sums[ROWS];
    UNROLL for (int r = 0; r < ROWS; ++r) sums[r] = start;
    for (int stack = part; part < KZ && stack < HIDDEN; stack += KZ) {
        const FLOAT4 w0 = FROM_RAW(next[0]);
        const FLOAT4 w1 = FROM_RAW(next[1]);
        const FLOAT4 w2 = FROM_RAW(next[2]);
        const FLOAT4 w3 = FROM_RAW(next[3]);
        if (stack + KZ < HIDDEN) {
            at += KZ * VECTORS;
            UNROLL for (int i = 0; i < 4; ++i) next[i] = LOAD_RAW_weight(at + i * plane);
        }
        UNROLL for (int r = 0; r < ROWS; ++r) {
            const WIDE4 value = hidden[r * HIDDEN + stack];
    INCLUDE four_inputs
        }
    }
    INCLUDE gathered
    const int stack = GROUP_ID(0) * VECTORS + column;
    if (part == 0 && stack < out_stacks) {
        UNROLL for (int r = 0; r < ROWS; ++r) {
            if (GROUP_ID(1) * ROWS + r < pictures) {
                WIDE4 sum = sums[r];
                TRIM(stack == out_stacks - 1, sum)
                STORE_dst(picture[r] * dst_stacks + dst_stack0 + stack, ACTIVATE(sum));
            }
        }
    }
}
