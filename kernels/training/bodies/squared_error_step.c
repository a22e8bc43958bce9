// Half the squared difference to the target, summed over each column, and its gradient before the activation of the last
// layer. BIAS: the columns' sums of that are the gradient of its bias, which takes its step. A work-group has CX vectors
// of columns, their rows shared out over KY work-items.
{
    const int me = LOCAL_ID(0);
    const int ky = me / CX;
    const int column = GROUP_ID(0) * CX + me % CX;
    WIDE4 loss = WIDE_SPLAT(0.0f);
    WIDE4 sum = WIDE_SPLAT(0.0f);
    if (column < columns4) {
        const int left = columns - 4 * column;  // lanes that are data
        for (int row = ky; row < batch; row += KY) {
            const WIDE4 y = LOAD_src(row * columns4 + column);
            WIDE4 d = y - LOAD_target(row * columns4 + column);
            d = VEC4(d.x, left > 1 ? d.y : 0.0f, left > 2 ? d.z : 0.0f, left > 3 ? d.w : 0.0f);
            loss += d * d;
            d *= WIDE_SPLAT(share);
            if (activation == 3) d *= y * (WIDE_SPLAT(1.0f) - y);
            if (activation == 1) {
                d = VEC4(y.x > 0.0f ? d.x : 0.0f, y.y > 0.0f ? d.y : 0.0f, y.z > 0.0f ? d.z : 0.0f, y.w > 0.0f ? d.w : 0.0f);
            }
            sum += d;
            STORE_dst(row * columns4 + column, d);
        }
    }
    losses_here[me] = loss;
    sums_here[me] = sum;
    BARRIER;
    for (int half_way = KY / 2; half_way > 0; half_way /= 2) {
        if (ky < half_way) {
            losses_here[me] += losses_here[me + half_way * CX];
            sums_here[me] += sums_here[me + half_way * CX];
        }
        BARRIER;
    }
    if (ky == 0 && column < columns4) {
        loss = losses_here[me];
        STORE_losses(column, 0.5f * (loss.x + loss.y + loss.z + loss.w));
#if BIAS
        const float rate = LOAD_rates(IMIN(LOAD_counter(0) / batches, epochs - 1));
        sum = sums_here[me];
        INCLUDE bias_step
#endif
    }
}
