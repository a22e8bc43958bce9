// softmax, row_norm and lrn.
#include <algorithm>
#include <cmath>

#include "backends/cpu/elements/kernels.h"
#include "operation.h"

namespace pocketfarm::cpu {
namespace {

constexpr int64_t kElementWork = 32;
constexpr int64_t kPowerWork = 512;
constexpr int64_t kTogether = 256;   // columns side by side

Status check_softmax(const Call& call) {
  const int64_t outer = call.ints[0], axis = call.ints[1], inner = call.ints[2];
  return Check(call)
      .sizes({outer, axis, inner})
      .holds("src", 0, {outer, axis, inner})
      .holds("dst", 1, {outer, axis, inner})
      .status();
}

void run_softmax(const Call& call, ThreadPool& pool) {
  const int64_t outer = call.ints[0], axis = call.ints[1], inner = call.ints[2];
  const int64_t blocks = (inner + kTogether - 1) / kTogether;
  const ElementKernels& kernels = element_kernels();
  pool.shared(outer * blocks, kElementWork * axis * std::min(inner, kTogether), [&](int64_t begin, int64_t end) {
    float sums[3 * kTogether];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks * kTogether, at = i / blocks * axis * inner + first;
      kernels.softmax(call.buffers[0].as<float>() + at, call.buffers[1].as<float>() + at, axis, inner, std::min(kTogether, inner - first), sums);
    }
  });
}

Status check_row_norm(const Call& call) {
  const int64_t rows = call.ints[0], columns = call.ints[1];
  return Check(call)
      .sizes({rows, columns})
      .holds("src", 0, {rows, columns})
      .holds("scale", 1, {columns})
      .holds("shift", 2, {columns})
      .holds("dst", 3, {rows, columns})
      .status();
}

void run_row_norm(const Call& call, ThreadPool& pool) {
  const int64_t columns = call.ints[1];
  const ElementKernels& kernels = element_kernels();
  const RowNorm norm{call.ints[2] != 0, call.floats[0], call.floats[1], call.buffers[1].as<float>(), call.buffers[2].as<float>()};
  pool.shared(call.ints[0], kElementWork * columns, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin * columns; at < end * columns; at += columns)
      kernels.normalise_row(call.buffers[0].as<float>() + at, call.buffers[3].as<float>() + at, columns, norm);
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
    const float* src = call.buffers[0].as<float>() + plane * hw;
    float* dst = call.buffers[1].as<float>() + plane * hw;
    for (int64_t i = 0; i < hw; ++i) {
      float squares = 0;
      for (int64_t d = first; d <= last; ++d) squares += src[d * hw + i] * src[d * hw + i];
      dst[i] = src[i] / std::pow(bias + alpha * squares, beta);
    }
  }, (kPowerWork + size) * n * c * hw);
}

}  // namespace

const Operation kSoftmax{"softmax", 2, 3, 0, check_softmax, run_softmax};
const Operation kRowNorm{"row_norm", 4, 3, 2, check_row_norm, run_row_norm};
const Operation kLrn{"lrn", 2, 4, 3, check_lrn, run_lrn};

}  // namespace pocketfarm::cpu
