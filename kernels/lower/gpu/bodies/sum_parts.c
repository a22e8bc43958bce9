// The sums of a product whose depth was divided: their parts, bias, activation.
{
    const int at = GLOBAL_ID(0);
    if (at >= count) return;
    const int row = at / columns4;
    const int column = at % columns4;
    WIDE4 each[PARTS];
    UNROLL for (int part = 0; part < PARTS; ++part) each[part] = LOAD_parts(part * count + at);
    WIDE4 sum = WIDE_SPLAT(0.0f);
    UNROLL for (int part = 0; part < PARTS; ++part) sum += each[part];
    if (has_bias != 0) sum += TO_WIDE4(LOAD_bias(column));
    STORE_dst(dst_start + row * dst_stride + column, ACTIVATE(sum));
}
