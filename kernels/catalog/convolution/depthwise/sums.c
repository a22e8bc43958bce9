    const int stack = GROUP_ID(1);
    const int picture = GROUP_ID(2);
#ifdef FILTERS
    const int source = stack / FILTERS;
    const int channel = stack % FILTERS * 4;
#define LANE_OF(v, at) ((at) == 0 ? (v).x : (at) == 1 ? (v).y : (at) == 2 ? (v).z : (v).w)
#define OWN_LANE(v, i) LANE_OF(v, (channel + i) / FILTERS)
#define OWN(v) VEC4(OWN_LANE(v, 0), OWN_LANE(v, 1), OWN_LANE(v, 2), OWN_LANE(v, 3))
#else
    const int source = stack;
#define OWN(v) (v)
#endif
    const int plane = (picture * src_stacks + src_stack0 + source) * h * w;

    WIDE4 sums[SUMS];
    UNROLL for (int p = 0; p < PIXELS; ++p) sums[p] = TO_WIDE4(LOAD_bias(stack));
    CHUNK_SUMS
