// Four products of signed bytes and their sum in one instruction (sdot): values less 128, and 128 times the weights' sum.
#if defined(__aarch64__)
#include <arm_neon.h>

#include "kernel.h"

#define KERNELS kInt8DotProd
#define PIXELS 4
#define BLOCKS 1
#define VECTOR_BYTES 16
#define WINDOW each_tap

namespace pocketfarm::cpu {
namespace {

template <int R, int V>
void tile_of(const Int8Product& p) {
  static_assert(V == 1);
  int32x4_t sum[R][4], weights[4];  // of four outputs each
  for (int q = 0; q < 4; ++q) {
    weights[q] = vdupq_n_s32(0);
    for (int r = 0; r < R; ++r) sum[r][q] = vdupq_n_s32(0);
  }
  const int8x16_t ones = vdupq_n_s8(1), half = vdupq_n_s8(-128);
  const int8_t* weight = p.weight;
  for (int64_t run = 0; run < p.runs; ++run) {
    const uint8_t* from = p.values + p.offsets[run];
    for (int64_t step = 0; step < p.steps; ++step, from += 4, weight += 64) {
      int8x16_t values[R];
      for (int r = 0; r < R; ++r) {
        int32_t four;
        __builtin_memcpy(&four, from + r * p.pixel_stride, sizeof four);
        values[r] = veorq_s8(vreinterpretq_s8_s32(vdupq_n_s32(four)), half);
      }
      for (int q = 0; q < 4; ++q) {
        const int8x16_t by = vld1q_s8(weight + 16 * q);
        weights[q] = vdotq_s32(weights[q], by, ones);
        for (int r = 0; r < R; ++r) sum[r][q] = vdotq_s32(sum[r][q], by, values[r]);
      }
    }
  }
  for (int r = 0; r < R; ++r)
    for (int q = 0; q < 4; ++q) vst1q_s32(p.sums + r * 16 + 4 * q, vmlaq_n_s32(sum[r][q], weights[q], 128));
}

}  // namespace
}  // namespace pocketfarm::cpu

#include "kernel.inc"
#endif
