// Elements along an axis of a plain array (outer, axis, inner), by whole numbers; negative ones count from the end. NaN where
// the number is none.
{
    const int i = GLOBAL_ID(0);
    if (i >= count) return;
    const int column = i % inner;
    const int row = i / inner;
    const float given = LOAD_indices(row % indices_count);
    const float known = given >= -16777216.0f && given <= 16777216.0f ? 1.0f : 0.0f;
    const int asked = TO_INT(known > 0.0f ? given : 0.0f);
    const int place = IMIN(IMAX(asked < 0 ? asked + axis : asked, 0), axis - 1);
    const float found = LOAD_src((row / indices_count * axis + place) * inner + column);
    STORE_dst(i, known > 0.0f ? found : LOWEST - LOWEST);
}
