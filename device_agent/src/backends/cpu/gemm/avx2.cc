#if defined(__x86_64__)
#define KERNEL kGemmAvx2
#define NAME "avx2"
#define VECTOR_BYTES 32
#define ROWS 6
#define VECTORS 2
#include "kernel.inc"
#endif
