#if defined(__x86_64__)
#define KERNELS kElementsAvx512
#define NAME "avx512f"
#include "kernels.inc"
#endif
