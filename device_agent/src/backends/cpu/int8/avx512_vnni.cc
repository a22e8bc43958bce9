// Four products and their sum in one instruction (vpdpbusd), which does not saturate.
#if defined(__x86_64__)
#include <immintrin.h>

#include "kernel.h"

#define KERNELS kInt8Avx512Vnni
#define PIXELS 12
#define BLOCKS 2
#define VECTOR_BYTES 64
#define WINDOW window

namespace pocketfarm::cpu {
namespace {

template <int R, int V>
void tile_of(const Int8Product& p) {
  constexpr int kApart = R * V <= 2 ? 4 : R * V <= 4 ? 2 : 1;  // sums side by side: one waits four cycles for the one before
  __m512i sum[kApart][V][R];
  for (int u = 0; u < kApart; ++u)
    for (int v = 0; v < V; ++v)
      for (int r = 0; r < R; ++r) sum[u][v][r] = _mm512_setzero_si512();
  const int8_t* weight = p.weight;
  const auto add = [&](const uint8_t* from, __m512i (&to)[V][R]) {
    __m512i by[V];
    for (int v = 0; v < V; ++v) by[v] = _mm512_loadu_si512(weight + v * p.weight_stride);
    for (int r = 0; r < R; ++r) {
      int32_t four;
      __builtin_memcpy(&four, from + r * p.pixel_stride, sizeof four);
      const __m512i values = _mm512_set1_epi32(four);
      for (int v = 0; v < V; ++v) to[v][r] = _mm512_dpbusd_epi32(to[v][r], values, by[v]);
    }
    weight += 64;
  };
  for (int64_t run = 0; run < p.runs; ++run) {
    const uint8_t* from = p.values + p.offsets[run];
    int64_t step = 0;
    for (; step + kApart <= p.steps; step += kApart)
      for (int u = 0; u < kApart; ++u, from += 4) add(from, sum[u]);
    for (; step < p.steps; ++step, from += 4) add(from, sum[0]);
  }
  for (int v = 0; v < V; ++v)
    for (int r = 0; r < R; ++r) {
      for (int u = 1; u < kApart; ++u) sum[0][v][r] = _mm512_add_epi32(sum[0][v][r], sum[u][v][r]);
      _mm512_storeu_si512(p.sums + (v * R + r) * 16, sum[0][v][r]);
    }
}

// From four taps of sixteen lanes to sixteen lanes of four taps.
inline __m512i turned(__m512i taps) {
  const __m512i fours = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i bytes = _mm512_set4_epi32(0x0F0B0703, 0x0E0A0602, 0x0D090501, 0x0C080400);
  return _mm512_shuffle_epi8(_mm512_permutexvar_epi32(fours, taps), bytes);
}

void each_tap(const Int8Window& v);

// Four taps at a time, where they lie side by side; weights of 0 stand behind the last.
template <int P>
void window_of(const Int8Window& v) {
  __m512i sum[P];
#pragma GCC unroll 12
  for (int p = 0; p < P; ++p) sum[p] = _mm512_setzero_si512();
  for (int64_t ky = 0; ky < v.kh; ++ky)
    for (int64_t kx = 0; kx < v.kw; kx += 4) {
      const int64_t left = v.kw - kx;
      const __mmask64 mask = left >= 4 ? ~__mmask64{0} : (__mmask64{1} << (16 * left)) - 1;
      const __m512i by = turned(_mm512_maskz_loadu_epi8(mask, v.weight + (ky * v.kw + kx) * 16));
      const uint8_t* from = v.values + ky * v.row_stride + kx * 16;
#pragma GCC unroll 12
      for (int p = 0; p < P; ++p)
        sum[p] = _mm512_dpbusd_epi32(sum[p], turned(_mm512_loadu_si512(from + p * v.pixel_stride)), by);
    }
#pragma GCC unroll 12
  for (int p = 0; p < P; ++p) _mm512_storeu_si512(v.sums + p * 16, sum[p]);
}

template <int P>
void windows_of(const Int8Window& v) {
  if (v.pixels >= P) return window_of<P>(v);
  if constexpr (P > 1) windows_of<P - 1>(v);
}

void window(const Int8Window& v) { v.tap_stride == 16 ? windows_of<PIXELS>(v) : each_tap(v); }

}  // namespace
}  // namespace pocketfarm::cpu

#include "kernel.inc"
#endif
