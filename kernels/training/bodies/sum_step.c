// Adds up the parts of a gradient, behind each of which lies that of the bias, and takes the step of both.
{
    const int i = GLOBAL_ID(0);
    if (i >= all_count) return;
    WIDE4 sum = WIDE_SPLAT(0.0f);
    for (int part = 0; part < parts; ++part) sum += LOAD_partial(part * part_size + i);
    const float rate = LOAD_rates(IMIN(LOAD_counter(0) / batches, epochs - 1));
    if (i < count) {
#if MOMENTUM
        sum += WIDE_SPLAT(momentum) * LOAD_velocity(i);
        STORE_velocity(i, sum);
#endif
        STORE_weight(i, LOAD_weight(i) - WIDE_SPLAT(rate) * sum);
    } else {
#if BIAS
        const int column = i - count;
        INCLUDE bias_step
#endif
    }
}
