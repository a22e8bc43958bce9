// Vectors of four channels -> words of four whole numbers, less 128, by a step that the model gives.
{
    const int i = GLOBAL_ID(0);
    if (i >= count) return;
    const int picture = GROUP_ID(1);
    const FLOAT4 x = LOAD_src((picture * src_stacks + src_stack0) * hw + i);
    const FLOAT4 q = DIVIDE4(x, step_size);
    STORE_codes(picture * count + i, WORD(TO_INT4(IN_STEPS(q, zero) + SPLAT(zero - 128.0f))));
}
