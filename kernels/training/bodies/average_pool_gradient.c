// A window gives each of its pixels that lie in the picture the same share of its gradient.
{
#define WIDTH stride
#define DOWN 1
#define ACROSS 1
#define IN_WINDOW(first, size, extent) (IMIN((first) + (size), extent) - IMAX(first, 0))
#define SHARE(at, channel) LOAD_src((at) + (channel)) / FLOAT(IN_WINDOW(left - pad_l, kw, w) * IN_WINDOW(up - pad_t, kh, h))
    INCLUDE window_gradient
}
