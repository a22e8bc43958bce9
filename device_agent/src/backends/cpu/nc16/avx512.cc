#if defined(__x86_64__)
#define KERNELS kNc16Avx512
#define NAME "avx512f"
#define VECTOR_BYTES 64
#define PIXELS 14
#define BLOCKS 2
#define SPAN 14
#include "kernels.inc"
#endif
