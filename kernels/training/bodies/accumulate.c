// dst += src.
{
    const int i = GLOBAL_ID(0);
    if (i >= count) return;
    STORE_dst(i, LOAD_dst(i) + LOAD_src(i));
}
