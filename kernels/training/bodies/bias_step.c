    // The step of a bias, whose gradient is `sum`.
#if MOMENTUM
    sum += WIDE_SPLAT(momentum) * LOAD_bias_velocity(column);
    STORE_bias_velocity(column, sum);
#endif
    STORE_bias(column, LOAD_bias(column) - WIDE_SPLAT(rate) * sum);
