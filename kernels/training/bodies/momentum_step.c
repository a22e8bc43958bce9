// velocity = momentum * velocity + gradient; weight -= rate * velocity, the rate by the epoch.
{
    const int i = GLOBAL_ID(0);
    if (i >= count) return;
    const float rate = LOAD_rates(IMIN(LOAD_counter(0) / batches, epochs - 1));
    const WIDE4 velocity_here = WIDE_SPLAT(momentum) * LOAD_velocity(i) + LOAD_gradient(i);
    STORE_velocity(i, velocity_here);
    STORE_weight(i, LOAD_weight(i) - WIDE_SPLAT(rate) * velocity_here);
}
