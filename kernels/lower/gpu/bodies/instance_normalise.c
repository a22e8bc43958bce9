// A pixel of a stack a work-item. JOINED: its work-group puts the statistics of its group of channels together itself.
// ALONE: each channel is a group, and has few chunks.
{
    const int pixel = GLOBAL_ID(0);
    const int stack = GROUP_ID(1);
    const int picture = GROUP_ID(2);
#ifdef JOINED
    const int me = LOCAL_ID(0);
    const int first = stack * 4 / channels * channels;
INCLUDE group_moments
    const FLOAT4 centre = SPLAT(mean);
    const FLOAT4 factor = LOAD_scale(stack) / SPLAT(deviation);
#elif defined(ALONE)
    const int from = (picture * stacks + stack) * chunks * 2;
    FLOAT4 centre = SPLAT(0.0f);
    FLOAT4 squares = SPLAT(0.0f);
    for (int i = 0; i < chunks; ++i) centre += LOAD_sums(from + 2 * i) * SPLAT(FLOAT(IMIN(span, hw - i * span)) / FLOAT(hw));
    for (int i = 0; i < chunks; ++i) {
        const FLOAT4 distance = LOAD_sums(from + 2 * i) - centre;
        squares += (distance * distance * SPLAT(FLOAT(IMIN(span, hw - i * span))) + LOAD_sums(from + 2 * i + 1)) / SPLAT(FLOAT(hw));
    }
    const FLOAT4 factor = LOAD_scale(stack) / SQRT(squares + SPLAT(epsilon));
#else
    const int from = (picture * stacks + stack) * 2;
    const FLOAT4 centre = LOAD_factors(from);
    const FLOAT4 factor = LOAD_factors(from + 1);
#endif
    if (pixel >= hw) return;
    const FLOAT4 distance = LOAD_src((picture * src_stacks + src_stack0 + stack) * hw + pixel) - centre;
    const FLOAT4 value = MAD(distance, factor, LOAD_shift(stack));
    STORE_dst((picture * dst_stacks + dst_stack0 + stack) * hw + pixel, ACTIVATE(value));
}
