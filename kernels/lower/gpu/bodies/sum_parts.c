// The sums of a product whose depth was divided: their parts, bias, activation.
{
    const int at = GLOBAL_ID(0);
    if (at >= count) return;
    const int row = at / columns4;
    const int column = at % columns4;
    WIDE4 sum = LOAD_parts(at);
    for (int part = 1; part < parts_count; ++part) sum += LOAD_parts(part * count + at);
    if (has_bias != 0) sum += TO_WIDE4(LOAD_bias(column));
    STORE_dst(dst_start + row * dst_stride + column, ACTIVATE(sum));
}
