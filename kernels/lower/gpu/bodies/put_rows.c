// Rows of `count` elements -> rows of `stride` elements, from the place of row `position` of `inner` elements on, but no later
// than `most`; dimension 1 counts the rows.
{
    const int i = GLOBAL_ID(0);
    if (i >= count) return;
    const int first = INT32(LOAD_position(0));
    STORE_dst(GROUP_ID(1) * stride + IMIN(IMAX(first, 0), most / inner) * inner + i, LOAD_src(GROUP_ID(1) * count + i));
}
