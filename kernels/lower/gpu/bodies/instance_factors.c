// One work-item a stack: its chunks' means and squares together (Chan et al. 1979) -> mean, scale / deviation.
{
    const int stack = GLOBAL_ID(0);
    if (stack >= stacks) return;
    const int picture = GROUP_ID(2);
    const int at = picture * stacks + stack;
    FLOAT4 mean = SPLAT(0.0f);
    FLOAT4 squares = SPLAT(0.0f);
    int count = 0;
    for (int chunk = 0; chunk < chunks; ++chunk) {
        const int more = IMIN(span, hw - chunk * span);
        const float share = FLOAT(more) / FLOAT(count + more);
        const FLOAT4 distance = LOAD_sums((at * chunks + chunk) * 2) - mean;
        mean = MAD(distance, SPLAT(share), mean);
        squares += MAD(distance * distance, SPLAT(FLOAT(count) * share), LOAD_sums((at * chunks + chunk) * 2 + 1));
        count += more;
    }
    STORE_factors(at * 2, mean);
    STORE_factors(at * 2 + 1, LOAD_scale(stack) / SQRT(squares / SPLAT(FLOAT(hw)) + SPLAT(epsilon)));
}
