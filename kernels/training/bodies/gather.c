// The rows of a batch out of the data set (samples, columns, hw), as rows of pixels with their channels side by side.
// BYTES: the set is bytes, four in a number.
{
    const int i = GLOBAL_ID(0);
    if (i >= batch * hw * stride) return;
    const int column = i % stride;
    const int pixel = i / stride % hw;
    const int row = i / stride / hw;
    INCLUDE drawn
    const int at = (drawn * columns + IMIN(column, columns - 1)) * hw + pixel;
    float value = 0.0f;
    if (column < columns) {
#if BYTES
        value = scale * FLOAT((LOAD_data(at / 4) >> (8 * (at % 4))) & 255);
#else
        value = scale * LOAD_data(at);
#endif
    }
    STORE_dst(i, value);
}
