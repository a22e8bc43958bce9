// Products of 16 bits (vpmaddwd): those of 8 bits that AVX2 has (vpmaddubsw) saturate.
#if defined(__x86_64__)
#include <immintrin.h>

#include "kernel.h"

#define KERNELS kInt8Avx2
#define PIXELS 2
#define BLOCKS 1
#define VECTOR_BYTES 32
#define WINDOW each_tap

namespace pocketfarm::cpu {
namespace {

template <int R, int V>
void tile_of(const Int8Product& p) {
  static_assert(V == 1);
  __m256i sum[R][4];  // of four outputs each: both halves of a step's sum
  for (int r = 0; r < R; ++r)
    for (int q = 0; q < 4; ++q) sum[r][q] = _mm256_setzero_si256();
  const int8_t* weight = p.weight;
  for (int64_t run = 0; run < p.runs; ++run) {
    const uint8_t* from = p.values + p.offsets[run];
    for (int64_t step = 0; step < p.steps; ++step, from += 4, weight += 64) {
      __m256i values[R];
      for (int r = 0; r < R; ++r) {
        int32_t four;
        __builtin_memcpy(&four, from + r * p.pixel_stride, sizeof four);
        values[r] = _mm256_broadcastq_epi64(_mm_cvtepu8_epi16(_mm_cvtsi32_si128(four)));
      }
      for (int q = 0; q < 4; ++q) {
        const __m256i by = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(weight + 16 * q)));
        for (int r = 0; r < R; ++r) sum[r][q] = _mm256_add_epi32(sum[r][q], _mm256_madd_epi16(values[r], by));
      }
    }
  }
  for (int r = 0; r < R; ++r)
    for (int q = 0; q < 4; q += 2) {
      const __m256i pairs = _mm256_permute4x64_epi64(_mm256_hadd_epi32(sum[r][q], sum[r][q + 1]), 0xD8);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(p.sums + r * 16 + q * 4), pairs);
    }
}

}  // namespace
}  // namespace pocketfarm::cpu

#include "kernel.inc"
#endif
