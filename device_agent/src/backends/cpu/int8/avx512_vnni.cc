// Four products and their sum in one instruction (vpdpbusd), which does not saturate.
#if defined(__x86_64__)
#include <immintrin.h>

#include "kernel.h"

#define KERNELS kInt8Avx512Vnni
#define PIXELS 12
#define BLOCKS 2

namespace pocketfarm::cpu {
namespace {

template <int R, int V>
void tile_of(const Int8Product& p) {
  __m512i sum[V][R];
  for (int v = 0; v < V; ++v)
    for (int r = 0; r < R; ++r) sum[v][r] = _mm512_setzero_si512();
  const int8_t* weight = p.weight;
  for (int64_t run = 0; run < p.runs; ++run) {
    const uint8_t* from = p.values + p.offsets[run];
    for (int64_t step = 0; step < p.steps; ++step, from += 4, weight += 64) {
      __m512i by[V];
      for (int v = 0; v < V; ++v) by[v] = _mm512_loadu_si512(weight + v * p.weight_stride);
      for (int r = 0; r < R; ++r) {
        int32_t four;
        __builtin_memcpy(&four, from + r * p.pixel_stride, sizeof four);
        const __m512i values = _mm512_set1_epi32(four);
        for (int v = 0; v < V; ++v) sum[v][r] = _mm512_dpbusd_epi32(sum[v][r], values, by[v]);
      }
    }
  }
  for (int v = 0; v < V; ++v)
    for (int r = 0; r < R; ++r) _mm512_storeu_si512(p.sums + (v * R + r) * 16, sum[v][r]);
}

}  // namespace
}  // namespace pocketfarm::cpu

#include "kernel.inc"
#endif
