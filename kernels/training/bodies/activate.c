// Every number by itself, in vectors of four: an activation; or tanh (7), the rational approximation of
// `kernels/lower/gpu/expression_text.py`, good to the last bits near zero as well.
{
    const int i = GLOBAL_ID(0);
    if (i >= count) return;
    const WIDE4 value = TO_WIDE4(LOAD_src(i));
    if (activation == 7) {
        const WIDE4 x = AT_MOST(AT_LEAST(value, WIDE_SPLAT(-7.90531110763549805f)), WIDE_SPLAT(7.90531110763549805f));
        const WIDE4 z = x * x;
        WIDE4 above = WIDE_SPLAT(-2.76076847742355e-16f);
        above = above * z + WIDE_SPLAT(2.00018790482477e-13f);
        above = above * z + WIDE_SPLAT(-8.60467152213735e-11f);
        above = above * z + WIDE_SPLAT(5.12229709037114e-08f);
        above = above * z + WIDE_SPLAT(1.48572235717979e-05f);
        above = above * z + WIDE_SPLAT(6.37261928875436e-04f);
        above = above * z + WIDE_SPLAT(4.89352455891786e-03f);
        WIDE4 below = WIDE_SPLAT(1.19825839466702e-06f);
        below = below * z + WIDE_SPLAT(1.18534705686654e-04f);
        below = below * z + WIDE_SPLAT(2.26843463243900e-03f);
        below = below * z + WIDE_SPLAT(4.89352518554385e-03f);
        STORE_dst(i, x * above / below);
    } else {
        STORE_dst(i, ACTIVATE(value));
    }
}
