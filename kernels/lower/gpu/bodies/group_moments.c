    // The means and squares of the chunks of `channels` channels from `first` on together: mean, deviation.
    const int parts = channels * chunks;
    const float count = FLOAT(channels) * FLOAT(hw);
    float mean = 0.0f;
    float sum = 0.0f;
    for (int turn = 0; turn < 2; ++turn) {
        sum = 0.0f;
        for (int from = me; from < parts; from += IN_A_ROW * KY) {
            float part = 0.0f;
            for (int i = from; i < IMIN(from + IN_A_ROW * KY, parts); i += KY) {
                const int c = first + i / chunks;
                const int at = ((picture * stacks + c / 4) * chunks + i % chunks) * 8 + c % 4;
                const float pixels = FLOAT(IMIN(span, hw - i % chunks * span));
                const float distance = LOAD_sums(at) - mean;
                part += turn == 0 ? distance * (pixels / count) : distance * distance * pixels + LOAD_sums(at + 4);
            }
            sum += part;
        }
        partial[me] = sum;
        INCLUDE summed
        sum = partial[0];
        BARRIER;
        if (turn == 0) mean = sum;
    }
    const float deviation = SQRT(sum / count + epsilon);
