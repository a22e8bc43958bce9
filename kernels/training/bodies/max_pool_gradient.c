// A window gives its gradient to the pixel that was the largest.
{
#define WIDTH stride
#define DOWN 1
#define ACROSS 1
#define SHARE(at, channel) (LOAD_winners((at) + (channel)) == FLOAT(ky * kw + kx) ? LOAD_src((at) + (channel)) : 0.0f)
    INCLUDE window_gradient
}
