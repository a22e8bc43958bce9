#if defined(__x86_64__)
#define KERNELS kElementsAvx2
#define NAME "avx2"
#include "kernels.inc"
#endif
