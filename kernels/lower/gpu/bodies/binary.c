// The vectors of a picture's stacks are one flat axis; a work-group's work-items are neighbours in each of TURNS turns.
{
    const int picture = GROUP_ID(2);
    const int vectors = stacks * hw;
    const int first = GROUP_ID(0) * LOCAL_SIZE(0) * TURNS + LOCAL_ID(0);
    UNROLL for (int turn = 0; turn < TURNS; ++turn) {
        const int i = first + turn * LOCAL_SIZE(0);
        if (i < vectors) {
            const FLOAT4 left = LOAD_a((picture * a_stacks + a_stack0) * hw + i);
            const FLOAT4 right = LOAD_b(by_channel != 0 ? i / hw : (picture * b_stacks + b_stack0) * hw + i);
            const FLOAT4 value = multiply != 0 ? left * right : left + right;
            STORE_dst((picture * dst_stacks + dst_stack0) * hw + i, ACTIVATE(TO_WIDE4(value)));
        }
    }
}
