// The end of a batch: its losses go to the sums of the epoch, which the first batch begins anew, and it is counted.
{
    if (GLOBAL_ID(0) > 0) return;
    const int done = LOAD_counter(0);
    float loss = 0.0f;
    float wrong = 0.0f;
    for (int i = 0; i < count; ++i) loss += LOAD_losses(i);
    if (classifies != 0) {
        for (int i = 0; i < count; ++i) wrong += LOAD_losses(count + i);
    }
    if (done % batches > 0) {
        loss += LOAD_report(0);
        wrong += LOAD_report(1);
    }
    STORE_report(0, loss);
    STORE_report(1, wrong);
    STORE_counter(0, done + 1);
}
