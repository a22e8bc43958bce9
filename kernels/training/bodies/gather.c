// The rows of a batch out of the data set (samples, columns, hw), as rows of pixels with their channels side by side.
// BYTES: the set is bytes, four in a number. WHOLE: a work-item takes a sample, so that it is drawn once, as suits a CPU;
// else a work-item takes a number.
#if BYTES
#define NUMBER_AT(at) FLOAT((LOAD_data((at) / 4) >> (8 * ((at) % 4))) & 255)
#else
#define NUMBER_AT(at) LOAD_data(at)
#endif
{
#if WHOLE
    const int row = GLOBAL_ID(0);
    if (row >= batch) return;
    INCLUDE drawn
    const int from = drawn * columns * hw;
    for (int pixel = 0; pixel < hw; ++pixel) {
        const int to = (row * hw + pixel) * stride;
        for (int column = 0; column < columns; ++column) {
            STORE_dst(to + column, scale * NUMBER_AT(from + column * hw + pixel));
        }
        for (int column = columns; column < stride; ++column) STORE_dst(to + column, 0.0f);
    }
#else
    const int i = GLOBAL_ID(0);
    if (i >= batch * hw * stride) return;
    const int column = i % stride;
    const int pixel = i / stride % hw;
    const int row = i / stride / hw;
    INCLUDE drawn
    const int at = (drawn * columns + IMIN(column, columns - 1)) * hw + pixel;
    STORE_dst(i, column < columns ? scale * NUMBER_AT(at) : 0.0f);
#endif
}
