// A plain array of shape (outer, channels, inner); count elements.
{
    const int i = GLOBAL_ID(0);
    if (i >= count) return;
    const int c = i / inner % channels;
    const float value = MAD(LOAD_src(i), LOAD_scale(c), LOAD_shift(c));
    STORE_dst(i, ACTIVATE1(value));
}
