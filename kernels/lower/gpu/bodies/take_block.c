// From rows of `src_stride` elements `count` each, from `src_offset` on; dimension 1 counts the rows.
{
    const int i = GLOBAL_ID(0);
    if (i >= count) return;
    STORE_dst(GROUP_ID(1) * count + i, LOAD_src(GROUP_ID(1) * src_stride + src_offset + i));
}
