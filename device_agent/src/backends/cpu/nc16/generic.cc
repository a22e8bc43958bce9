// Four lanes: SSE2 and NEON.
#define KERNELS kNc16Generic
#define VECTOR_BYTES 16
#define BLOCKS 1
#if defined(__aarch64__)
#define NAME "neon"
#define PIXELS 6
#define SPAN 8
#else
#define NAME "generic"
#define PIXELS 2
#define SPAN 4
#endif
#include "kernels.inc"
