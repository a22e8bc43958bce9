// The products of a training: either operand may lie the other way round, so that nothing is transposed in memory.
#include <algorithm>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/operations/operation.h"

namespace pocketfarm::cpu {
namespace {

struct ProductCall {
  int64_t rows, depth, columns, a_stride, b_stride;
  bool a_turned, b_turned, has_bias;
  int32_t activation;

  explicit ProductCall(const Call& call)
      : rows(call.ints[0]), depth(call.ints[1]), columns(call.ints[2]), a_stride(call.ints[3]), b_stride(call.ints[4]),
        a_turned(call.ints[5] != 0), b_turned(call.ints[6] != 0), has_bias(call.ints[7] != 0), activation(call.ints[8]) {}
};

Status check_product(const Call& call) {
  const ProductCall v(call);
  Check check(call);
  check.sizes({v.rows, v.depth, v.columns, v.a_stride, v.b_stride}).range("activation", v.activation, 0, kLastActivation);
  check.that(v.a_stride >= (v.a_turned ? v.rows : v.depth) && v.b_stride >= (v.b_turned ? v.depth : v.columns),
             "a stride is less than what a row has");
  if (check.status()) return check.status();
  return check.holds("a", 0, {v.a_turned ? v.depth : v.rows, v.a_stride})
      .holds("b", 1, {v.b_turned ? v.columns : v.depth, v.b_stride})
      .holds("bias", 2, {v.has_bias ? v.columns : 1})
      .holds("dst", 3, {v.rows, v.columns})
      .status();
}

void run_product(const Call& call, ThreadPool& pool) {
  const ProductCall v(call);
  const float *a = call.buffers[0].as<float>(), *b = call.buffers[1].as<float>(), *bias = call.buffers[2].as<float>();
  float* dst = call.buffers[3].as<float>();
  Gemm gemm{v.rows, v.columns, v.depth, a, v.a_stride, dst, v.columns,
            v.b_turned ? pack_columns(b, v.b_stride) : pack_rows(b, v.b_stride), {}, v.a_turned};
  if (v.has_bias || v.activation != 0)
    gemm.finish = [&](const Block& block) {
      for (int64_t row = block.row; row < block.row + block.rows; ++row) {
        float* out = dst + row * v.columns + block.column;
        for (int64_t i = 0; v.has_bias && i < block.columns; ++i) out[i] += bias[block.column + i];
        activate(out, block.columns, v.activation, call.floats[0], call.floats[1]);
      }
    };
  multiply(gemm, pool);
}

}  // namespace

const Operation kTrainingProduct{"training_product", 4, 9, 2, check_product, run_product};

}  // namespace pocketfarm::cpu
