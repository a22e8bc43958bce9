// Four lanes: SSE2 and NEON.
#define KERNEL kGemmGeneric
#define VECTOR_BYTES 16
#define VECTORS 2
#if defined(__aarch64__)
#define NAME "neon"
#define ROWS 8
#else
#define NAME "generic"
#define ROWS 4
#endif
#include "kernel.inc"
