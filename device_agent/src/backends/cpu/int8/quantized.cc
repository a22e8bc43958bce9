#include "quantized.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/processor/instruction_set.h"

namespace pocketfarm::cpu {

const Int8Kernels& int8_kernels() {
#if defined(__x86_64__)
  static const bool vnni = __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw");
  if (instruction_set() == InstructionSet::avx512 && vnni) return kInt8Avx512Vnni;
  if (instruction_set() != InstructionSet::generic) return kInt8Avx2;
#endif
  return kInt8Generic;
}

Int8Steps steps_of(const Int8Range& range) {
  constexpr float kLeast = 1e-37f;  // its inverse is finite; what is smaller counts as zero
  const float scale = (range.most - range.least) / 255;
  if (!range.finite || !std::isfinite(scale)) return {std::numeric_limits<float>::quiet_NaN(), 0, 0};
  if (scale < kLeast) return {1, 1, 0};
  const float inverse = 1 / scale;
  return {scale, inverse, std::clamp(static_cast<int32_t>(std::nearbyint(-range.least * inverse)), 0, 255)};
}

Int8Steps given_steps(float scale, int32_t zero) {
  constexpr float kLeast = 1e-25f, kMost = 1e25f;  // nothing that a quotient near 256 needs is denormal or infinite
  const float inverse = 1 / scale;
  const auto rest = static_cast<float>(1 / static_cast<double>(scale) - static_cast<double>(inverse));
  return {scale, inverse, zero, true, rest, scale > kLeast && scale < kMost};
}

void correct(const Int8Steps& steps, const int32_t* weight_sums, const float* weight_scales, int32_t* start, float* factor) {
  for (int lane = 0; lane < 16; ++lane) {
    start[lane] = static_cast<int32_t>(static_cast<uint32_t>(steps.zero) * static_cast<uint32_t>(weight_sums[lane]));
    factor[lane] = steps.scale * weight_scales[lane];
  }
}

}  // namespace pocketfarm::cpu
