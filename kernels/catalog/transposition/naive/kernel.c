// dst has shape (d0, d1, d2, d3); s0..s3 are the source's strides in the order of dst's axes.
{
    const int i = GLOBAL_ID(0);
    if (i >= count) return;
    const int i3 = i % d3;
    const int i2 = i / d3 % d2;
    const int i1 = i / d3 / d2 % d1;
    const int i0 = i / d3 / d2 / d1;
    STORE_dst(i, LOAD_src(i0 * s0 + i1 * s1 + i2 * s2 + i3 * s3));
}
