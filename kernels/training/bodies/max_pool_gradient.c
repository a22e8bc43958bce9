// A window gives its gradient to the pixel that was the largest.
{
#define SHARE(at) (LOAD_winners(at) == FLOAT(ky * kw + kx) ? LOAD_src(at) : 0.0f)
    INCLUDE pool_gradient
}
