// A column a work-item: half the squared difference to the target, summed over the columns, and the gradient of its mean
// over the batch. The losses are those of the columns.
{
    const int column = GLOBAL_ID(0);
    if (column >= stride) return;
    float sum = 0.0f;
    for (int row = 0; row < batch; ++row) {
        const int at = row * stride + column;
        float difference = LOAD_src(at) - LOAD_target(at);
        if (column >= columns) difference = 0.0f;
        STORE_dst(at, difference * share);
        sum = MAD(difference, difference, sum);
    }
    STORE_losses(column, 0.5f * sum);
}
