// As `count_batch`, by one work-group.
{
    const int me = LOCAL_ID(0);
    float loss = 0.0f;
    float wrong = 0.0f;
    for (int i = me; i < count; i += SHARED) {
        loss += LOAD_losses(i);
        if (classifies != 0) wrong += LOAD_losses(count + i);
    }
    sums_here[me] = VEC4(loss, wrong, 0.0f, 0.0f);
    BARRIER;
    for (int half_way = SHARED / 2; half_way > 0; half_way /= 2) {
        if (me < half_way) sums_here[me] += sums_here[me + half_way];
        BARRIER;
    }
    if (me == 0) {
        const int done = LOAD_counter(0);
        WIDE4 sum = sums_here[0];
        if (done % batches > 0) sum += VEC4(LOAD_report(0), LOAD_report(1), 0.0f, 0.0f);
        STORE_report(0, sum.x);
        STORE_report(1, sum.y);
        STORE_counter(0, done + 1);
    }
}
