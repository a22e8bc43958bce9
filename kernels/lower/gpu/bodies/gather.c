// Elements along an axis of a plain array (outer, axis, inner), by whole numbers; negative ones count from the end, and those
// beyond an end are of its element. BITS: of a table of packed rows. ROWS: of `rows` rows from `first` on; those of others are
// any (1) or stay as they are (2). Where places are floats (no WHOLE): NaN where one is no whole number that these hold.
{
    const int i = GLOBAL_ID(0);
    if (i >= count) return;
    const int column = i % inner;
    const int row = i / inner;
    const int at = row % indices_count;
#ifdef WHOLE
    const int asked = LOAD_indices(at) < -axis ? -axis : LOAD_indices(at) >= axis ? axis - 1 : INT32(LOAD_indices(at));
#define FOUND(v) (v)
#else
    const float given = LOAD_indices(at);
    const float known = given >= -16777216.0f && given <= 16777216.0f ? 1.0f : 0.0f;
    const int asked = TO_INT(known > 0.0f ? given : 0.0f);
#define FOUND(v) (known > 0.0f ? (v) : LOWEST - LOWEST)
#endif
    const int place = IMIN(IMAX(asked < 0 ? asked + axis : asked, 0), axis - 1);
#ifdef ROWS
    const int held = IMIN(IMAX(place - first, 0), rows - 1);
#if ROWS == 2
    if (held != place - first) return;
#endif
#else
    const int held = place;
#endif
#ifdef BITS
    const int lane = held % 16;
    const int block = (held / 16 * ((inner + BLOCK - 1) / BLOCK) + column / BLOCK) * BLOCK_VECTORS * 4;
    const int codes = block + (CODES + column % BLOCK / SPAN * SPAN_WORDS * 4) * 4 + lane;
    STORE_dst(i, FOUND(UNPACKED1(block, codes, column % BLOCK / GROUP_SIZE, column % SPAN)));
#else
    STORE_dst(i, FOUND(LOAD_src((row / indices_count * axis + held) * inner + column)));
#endif
}
