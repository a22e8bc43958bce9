// Rows of `count` elements -> rows of `dst_stride` elements, from `dst_offset` on; dimension 1 counts the rows.
{
    const int i = GLOBAL_ID(0);
    if (i >= count) return;
    STORE_dst(GROUP_ID(1) * dst_stride + dst_offset + i, LOAD_src(GROUP_ID(1) * count + i));
}
