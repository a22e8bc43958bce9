// One output a work-item, every operand read from memory. The lanes that pad a row are computed like the others.
{
    const int column = GLOBAL_ID(0);
    if (column >= 4 * columns4) return;
    const int row = GROUP_ID(1);
    const int batch = GROUP_ID(2);
    const int a_at = 4 * (a_start + batch * a_batch + row * a_stride);
    int b_at = 4 * batch * b_batch + column;
    float sum = 0.0f;
    for (int k = 0; k < depth; ++k) {
        sum = MAD(LOAD_a(a_at + k), LOAD_b(b_at), sum);
        b_at += 4 * b_stride;
    }
    if (has_bias != 0) sum += LOAD_bias(column);
    STORE_dst(4 * (dst_start + batch * dst_batch + row * dst_stride) + column, ACTIVATE1(sum));
}
