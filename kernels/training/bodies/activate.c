// Every number by itself, in vectors of four.
{
    const int i = GLOBAL_ID(0);
    if (i >= count) return;
    const WIDE4 value = TO_WIDE4(LOAD_src(i));
    STORE_dst(i, ACTIVATE(value));
}
