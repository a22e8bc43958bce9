// softmax and lrn.
#include <algorithm>
#include <cmath>

#include "operation.h"

namespace pocketfarm::cpu {
namespace {

Status check_softmax(const Call& call) {
  const int64_t outer = call.ints[0], axis = call.ints[1], inner = call.ints[2];
  return Check(call)
      .sizes({outer, axis, inner})
      .holds("src", 0, {outer, axis, inner})
      .holds("dst", 1, {outer, axis, inner})
      .status();
}

void softmax(const float* src, float* dst, int64_t axis, int64_t stride) {
  float largest = src[0];
  for (int64_t i = 1; i < axis; ++i) largest = std::max(largest, src[i * stride]);
  double sum = 0;
  for (int64_t i = 0; i < axis; ++i) sum += dst[i * stride] = std::exp(src[i * stride] - largest);
  const auto factor = static_cast<float>(1 / sum);
  for (int64_t i = 0; i < axis; ++i) dst[i * stride] *= factor;
}

void run_softmax(const Call& call, ThreadPool& pool) {
  const int64_t outer = call.ints[0], axis = call.ints[1], inner = call.ints[2];
  pool.ranges(outer * inner, 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t start = i / inner * axis * inner + i % inner;
      softmax(call.buffers[0].data + start, call.buffers[1].data + start, axis, inner);
    }
  });
}

Status check_lrn(const Call& call) {
  const int64_t n = call.ints[0], c = call.ints[1], hw = call.ints[2], size = call.ints[3];
  return Check(call).sizes({n, c, hw, size}).holds("src", 0, {n, c, hw}).holds("dst", 1, {n, c, hw}).status();
}

void run_lrn(const Call& call, ThreadPool& pool) {
  const int64_t n = call.ints[0], c = call.ints[1], hw = call.ints[2], size = call.ints[3];
  const float alpha = call.floats[0] / static_cast<float>(size), beta = call.floats[1], bias = call.floats[2];
  const int64_t before = (size - 1) / 2, after = size - 1 - before;
  pool.each(n * c, [&](int64_t plane, int) {
    const int64_t channel = plane % c;
    const int64_t first = -std::min(channel, before), last = std::min(c - 1 - channel, after);
    const float* src = call.buffers[0].data + plane * hw;
    float* dst = call.buffers[1].data + plane * hw;
    for (int64_t i = 0; i < hw; ++i) {
      float squares = 0;
      for (int64_t d = first; d <= last; ++d) squares += src[d * hw + i] * src[d * hw + i];
      dst[i] = src[i] / std::pow(bias + alpha * squares, beta);
    }
  });
}

}  // namespace

const Operation kSoftmax{"softmax", 2, 3, 0, check_softmax, run_softmax};
const Operation kLrn{"lrn", 2, 4, 3, check_lrn, run_lrn};

}  // namespace pocketfarm::cpu
