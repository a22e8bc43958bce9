// Elements along an axis of a plain array (outer, axis, inner), by whole numbers; negative ones count from the end.
{
    const int i = GLOBAL_ID(0);
    if (i >= count) return;
    const int column = i % inner;
    const int row = i / inner;
    const int asked = TO_INT(LOAD_indices(row % indices_count));
    const int place = IMIN(IMAX(asked < 0 ? asked + axis : asked, 0), axis - 1);
    STORE_dst(i, LOAD_src((row / indices_count * axis + place) * inner + column));
}
