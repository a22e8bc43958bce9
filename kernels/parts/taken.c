// What `reduce` takes of an element: itself, or SQUARED its square.
#ifdef SQUARED
#define TAKEN(at) (LOAD_src(at) * LOAD_src(at))
#else
#define TAKEN(at) LOAD_src(at)
#endif
