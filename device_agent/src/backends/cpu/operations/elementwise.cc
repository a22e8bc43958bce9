// binary and affine.
#include <algorithm>

#include "../nc16/nc16.h"
#include "operation.h"

namespace pocketfarm::cpu {
namespace {

constexpr int64_t kElementWork = 6;

enum Mode : int32_t { kSame = 0, kAlongAxis = 1, kOne = 2 };

Status check_binary(const Call& call) {
  const int64_t mode = call.ints[1], outer = call.ints[2], axis = call.ints[3], inner = call.ints[4];
  Check check(call);
  check.range("op", call.ints[0], 0, 1).range("mode", mode, 0, 2).range("activation", call.ints[5], 0, kLastActivation);
  check.sizes({outer, axis, inner}).holds("a", 0, {outer, axis, inner}).holds("dst", 2, {outer, axis, inner});
  if (mode == kSame) return check.holds("b", 1, {outer, axis, inner}).status();
  return check.holds("b", 1, {mode == kAlongAxis ? axis : 1}).status();
}

template <typename Combine>
void combine(const Call& call, int64_t begin, int64_t end, Combine op) {
  const float *a = call.buffers[0].as<float>(), *b = call.buffers[1].as<float>();
  float* dst = call.buffers[2].as<float>();
  const int64_t axis = call.ints[3], inner = call.ints[4];
  if (call.ints[1] == kSame) {
    for (int64_t i = begin; i < end; ++i) dst[i] = op(a[i], b[i]);
    return;
  }
  if (call.ints[1] == kAlongAxis && inner == 1) {  // each row meets the whole of b
    for (int64_t i = begin; i < end;) {
      const int64_t at = i % axis, count = std::min(end - i, axis - at);
      for (int64_t k = 0; k < count; ++k) dst[i + k] = op(a[i + k], b[at + k]);
      i += count;
    }
    return;
  }
  for (int64_t i = begin; i < end;) {  // runs of elements that meet the same element of b
    const bool one = call.ints[1] == kOne;
    const int64_t run_end = one ? end : std::min(end, (i / inner + 1) * inner);
    const float other = one ? b[0] : b[i / inner % axis];
    for (; i < run_end; ++i) dst[i] = op(a[i], other);
  }
}

void run_binary(const Call& call, ThreadPool& pool) {
  const int64_t count = int64_t{call.ints[2]} * call.ints[3] * call.ints[4];
  pool.shared(count, kElementWork, [&](int64_t begin, int64_t end) {
    if (call.ints[0] == 0) {
      combine(call, begin, end, [](float a, float b) { return a + b; });
    } else {
      combine(call, begin, end, [](float a, float b) { return a * b; });
    }
    activate(call.buffers[2].as<float>() + begin, end - begin, call.ints[5], call.floats[0], call.floats[1]);
  });
}

Status check_affine(const Call& call) {
  const int64_t n = call.ints[0], c = call.ints[1], hw = call.ints[2];
  const int64_t lanes = call.ints[3];
  const bool whole = lanes == 1 || (lanes == kBlock && c % kBlock == 0);
  return Check(call)
      .sizes({n, c, hw})
      .that(whole, "affine: lanes must be 1, or 16 of which c is a multiple")
      .range("activation", call.ints[4], 0, kLastActivation)
      .holds("src", 0, {n, c, hw})
      .holds("scale", 1, {c})
      .holds("shift", 2, {c})
      .holds("dst", 3, {n, c, hw})
      .status();
}

template <int kLanes>
void run_planes(const Call& call, ThreadPool& pool) {
  const int64_t n = call.ints[0], planes = call.ints[1] / kLanes, hw = call.ints[2];
  pool.shared(n * planes, kElementWork * hw * kLanes, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const float* scale = call.buffers[1].as<float>() + plane % planes * kLanes;
      const float* shift = call.buffers[2].as<float>() + plane % planes * kLanes;
      const float* src = call.buffers[0].as<float>() + plane * hw * kLanes;
      float* dst = call.buffers[3].as<float>() + plane * hw * kLanes;
      for (int64_t i = 0; i < hw * kLanes; i += kLanes) {
        for (int lane = 0; lane < kLanes; ++lane) dst[i + lane] = src[i + lane] * scale[lane] + shift[lane];
      }
      activate(dst, hw * kLanes, call.ints[4], call.floats[0], call.floats[1]);
    }
  });
}

void run_affine(const Call& call, ThreadPool& pool) {
  call.ints[3] == 1 ? run_planes<1>(call, pool) : run_planes<kBlock>(call, pool);
}

}  // namespace

const Operation kBinary{"binary", 3, 6, 2, check_binary, run_binary};
const Operation kAffine{"affine", 4, 5, 2, check_affine, run_affine};

}  // namespace pocketfarm::cpu
