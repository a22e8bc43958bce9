// Sums over the rows, of a part of them a row of work-groups.
{
    const int column = GLOBAL_ID(0);
    if (column >= columns4) return;
    const int part = GROUP_ID(1);
    const int end = IMIN(rows, (part + 1) * each);
    WIDE4 sum = WIDE_SPLAT(0.0f);
    for (int row = part * each; row < end; ++row) sum += TO_WIDE4(LOAD_src(row * columns4 + column));
    STORE_dst(part * columns4 + column, sum);
}
