// softmax and row_norm.
#include <algorithm>
#include <cmath>

#include "backends/cpu/elements/kernels.h"
#include "operation.h"

namespace pocketfarm::cpu {
namespace {

constexpr int64_t kElementWork = 32;
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
      .range("added", call.ints[3], 0, 1)
      .holds("src", 0, {rows, columns})
      .holds("scale", 1, {columns})
      .holds("shift", 2, {columns})
      .holds("beside", 3, {rows, columns})
      .holds("dst", 4, {rows, columns})
      .status();
}

void run_row_norm(const Call& call, ThreadPool& pool) {
  const int64_t columns = call.ints[1];
  const ElementKernels& kernels = element_kernels();
  const RowNorm norm{call.ints[2] != 0, call.floats[0], call.floats[1], call.buffers[1].as<float>(), call.buffers[2].as<float>()};
  pool.shared(call.ints[0], kElementWork * columns, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin * columns; at < end * columns; at += columns) {
      float* dst = call.buffers[4].as<float>() + at;
      kernels.normalise_row(call.buffers[0].as<float>() + at, dst, columns, norm);
      const float* beside = call.buffers[3].as<float>() + at;
      if (call.ints[3]) for (int64_t i = 0; i < columns; ++i) dst[i] += beside[i];
    }
  });
}

}  // namespace

const Operation kSoftmax{"softmax", 2, 3, 0, check_softmax, run_softmax};
const Operation kRowNorm{"row_norm", 5, 4, 2, check_row_norm, run_row_norm};

}  // namespace pocketfarm::cpu
