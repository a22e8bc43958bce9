// Elements along an axis of a plain array (outer, axis, inner), by whole numbers; negative ones count from the end, and those
// beyond an end are of its element.
{
    const int i = GLOBAL_ID(0);
    if (i >= count) return;
    const int column = i % inner;
    const int row = i / inner;
    const int at = row % indices_count;
    const int asked = LOAD_indices(at) < -axis ? -axis : LOAD_indices(at) >= axis ? axis - 1 : INT32(LOAD_indices(at));
    const int place = asked < 0 ? asked + axis : asked;
    STORE_dst(i, LOAD_src((row / indices_count * axis + place) * inner + column));
}
