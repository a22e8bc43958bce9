// Two results of `reduce` to one: 0 the sum, 1 the maximum, 2 the minimum, 3 the product.
#if KIND == 0
#define JOINED(a, b) ((a) + (b))
#elif KIND == 1
#define JOINED(a, b) (((b) > (a) || (b) != (b)) ? (b) : (a))
#elif KIND == 2
#define JOINED(a, b) (((b) < (a) || (b) != (b)) ? (b) : (a))
#else
#define JOINED(a, b) ((a) * (b))
#endif
