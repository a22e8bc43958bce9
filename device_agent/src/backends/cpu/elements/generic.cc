// Four lanes: SSE2 and NEON.
#define KERNELS kElementsGeneric
#if defined(__aarch64__)
#define NAME "neon"
#else
#define NAME "generic"
#endif
#include "kernels.inc"
