#include "quantized.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "backends/cpu/processor/instruction_set.h"

namespace pocketfarm::cpu {
namespace {

constexpr int64_t kTasksPerThread = 4;   // for balance
constexpr int64_t kRangeFloats = 16384;  // of a task that looks for the range

}  // namespace

const Int8Kernels& int8_kernels() {
#if defined(__x86_64__)
  static const bool vnni = __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw");
  if (instruction_set() == InstructionSet::avx512 && vnni) return kInt8Avx512Vnni;
  if (instruction_set() != InstructionSet::generic) return kInt8Avx2;
#elif defined(__aarch64__)
  constexpr unsigned long kHasDotProducts = 1ul << 20;  // HWCAP_ASIMDDP, which old headers lack
  if ((getauxval(AT_HWCAP) & kHasDotProducts) != 0) return kInt8DotProd;
#endif
  return kInt8Generic;
}

const char* int8_instruction() {
#if defined(__x86_64__)
  if (&int8_kernels() == &kInt8Avx512Vnni) return "vnni";
#elif defined(__aarch64__)
  if (&int8_kernels() == &kInt8DotProd) return "sdot";
#endif
  return "";
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

Int8Steps dynamic_steps(const Int8Range& range) {
  const float span = range.most - range.least, scale = span / 255;
  if (!range.finite || !std::isfinite(span)) return {std::numeric_limits<float>::quiet_NaN(), 0, 0};
  if (!(scale > 0)) return given_steps(1, 0);
  return given_steps(scale, static_cast<int32_t>(std::nearbyint(std::clamp(-range.least / scale, 0.0f, 255.0f))));
}

void widen(const Int8Kernels& kernels, ThreadPool& pool, const float* from, int64_t count, Int8Range* range) {
  const int64_t parts = std::clamp<int64_t>(count / kRangeFloats, 1, kTasksPerThread * pool.threads());
  if (parts == 1) return kernels.range(from, count, range);
  std::vector<Int8Range> found(static_cast<size_t>(parts));
  pool.each(parts, [&](int64_t i, int) {
    kernels.range(from + count * i / parts, count * (i + 1) / parts - count * i / parts, &found[static_cast<size_t>(i)]);
  });
  for (const Int8Range& own : found) {
    range->least = std::min(range->least, own.least), range->most = std::max(range->most, own.most);
    range->finite = range->finite && own.finite;
  }
}

}  // namespace pocketfarm::cpu
