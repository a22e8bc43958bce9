// dst (batches, rows, columns) = a (batches or 1, rows, depth) times b (batches or 1, depth, columns), in whole numbers.
{
    const int i = GLOBAL_ID(0);
    if (i >= count) return;
    const int column = i % columns;
    const int row = i / columns % rows;
    const int batch = i / columns / rows;
    const int from_a = batch * a_batch + row * depth;
    const int from_b = batch * b_batch + column;
    HELD sum = LOAD_a(from_a) * LOAD_b(from_b);
    for (int k = 1; k < depth; ++k) sum += LOAD_a(from_a + k) * LOAD_b(from_b + k * columns);
    STORE_dst(i, sum);
}
