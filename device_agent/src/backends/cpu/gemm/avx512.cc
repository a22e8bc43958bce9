#if defined(__x86_64__)
#define KERNEL kGemmAvx512
#define NAME "avx512f"
#define VECTOR_BYTES 64
#define ROWS 8
#define VECTORS 2
#include "kernel.inc"
#endif
