// Every number by itself, in vectors of four: an activation.
{
    const int i = GLOBAL_ID(0);
    if (i >= count) return;
    STORE_dst(i, ACTIVATE(TO_WIDE4(LOAD_src(i))));
}
