// A window gives each of its pixels that lie in the picture the same share of its gradient.
{
#define IN_WINDOW(first, size, extent) (IMIN((first) + (size), extent) - IMAX(first, 0))
#define SHARE(at) LOAD_src(at) / FLOAT(IN_WINDOW(left - pad_l, kw, w) * IN_WINDOW(up - pad_t, kh, h))
    INCLUDE pool_gradient
}
