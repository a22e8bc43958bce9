// A row a work-item: softmax, its cross-entropy with the label, and the gradient of the mean over the batch. Then the
// losses of the rows, and for each whether another answer than the label has the largest value.
{
    const int row = GLOBAL_ID(0);
    if (row >= batch) return;
    INCLUDE drawn
    const int label = (LOAD_labels(drawn / 4) >> (8 * (drawn % 4))) & 255;
    const int at = row * stride;
    float largest = LOAD_src(at);
    int answer = 0;
    for (int column = 1; column < columns; ++column) {
        const float value = LOAD_src(at + column);
        if (value > largest) {
            largest = value;
            answer = column;
        }
    }
    float sum = 0.0f;
    for (int column = 0; column < columns; ++column) sum += EXP(LOAD_src(at + column) - largest);
    for (int column = 0; column < stride; ++column) {
        float gradient = 0.0f;
        if (column < columns) gradient = EXP(LOAD_src(at + column) - largest) / sum;
        if (column == label) gradient -= 1.0f;
        STORE_dst(at + column, gradient * share);
    }
    float loss = LOWEST - LOWEST;  // a label beyond the last class: not a number
    if (label < columns) loss = LOG(sum) + largest - LOAD_src(at + label);
    STORE_losses(row, loss);
    STORE_losses(batch + row, answer == label ? 0.0f : 1.0f);
}
