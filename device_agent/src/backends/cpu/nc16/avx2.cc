#if defined(__x86_64__)
#define KERNELS kNc16Avx2
#define NAME "avx2"
#define VECTOR_BYTES 32
#define PIXELS 6
#define BLOCKS 1
#define SPAN 8
#include "kernels.inc"
#endif
