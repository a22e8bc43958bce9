// weight -= rate * gradient, the rate by the epoch.
{
    const int i = GLOBAL_ID(0);
    if (i >= count) return;
    const float rate = LOAD_rates(IMIN(LOAD_counter(0) / batches, epochs - 1));
    STORE_weight(i, LOAD_weight(i) - WIDE_SPLAT(rate) * LOAD_gradient(i));
}
