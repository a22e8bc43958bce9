// product and matmul.
#include <algorithm>

#include "backends/cpu/gemm/gemm.h"
#include "operation.h"

namespace pocketfarm::cpu {
namespace {

constexpr int64_t kMinGemmRows = 4;  // rows from which the matrix product pays
constexpr int64_t kRowWork = 4;      // of a number that is read for one row only

struct ProductCall {
  const float *a, *b, *bias;
  float* dst;
  int64_t rows, depth, columns, a_stride, b_stride;
  bool a_turned, b_turned, has_bias;
  int32_t activation;
  float lo, hi;

  explicit ProductCall(const Call& call)
      : a(call.buffers[0].as<float>()), b(call.buffers[1].as<float>()), bias(call.buffers[2].as<float>()), dst(call.buffers[3].as<float>()),
        rows(call.ints[0]), depth(call.ints[1]), columns(call.ints[2]), a_stride(call.ints[3]), b_stride(call.ints[4]),
        a_turned(call.ints[5] != 0), b_turned(call.ints[6] != 0), has_bias(call.ints[7] != 0), activation(call.ints[8]),
        lo(call.floats[0]), hi(call.floats[1]) {}

  void finish(int64_t row, int64_t begin, int64_t count) const {
    float* out = dst + row * columns + begin;
    for (int64_t i = 0; has_bias && i < count; ++i) out[i] += bias[begin + i];
    activate(out, count, activation, lo, hi);
  }
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

// One row: reads the matrix once, in order.
void vector_matrix(const ProductCall& v, int64_t row, int64_t begin, int64_t end) {
  float* out = v.dst + row * v.columns;
  std::fill(out + begin, out + end, 0.0f);
  for (int64_t i = 0; i < v.depth; ++i) {
    const float factor = v.a[row * v.a_stride + i];
    const float* other = v.b + i * v.b_stride;
    for (int64_t j = begin; j < end; ++j) out[j] += factor * other[j];
  }
  v.finish(row, begin, end - begin);
}

void run_product(const Call& call, ThreadPool& pool) {
  const ProductCall v(call);
  if (v.rows < kMinGemmRows && !v.a_turned && !v.b_turned) {
    for (int64_t row = 0; row < v.rows; ++row)
      pool.shared(v.columns, kRowWork * v.depth, [&](int64_t begin, int64_t end) { vector_matrix(v, row, begin, end); });
    return;
  }
  Gemm gemm{v.rows, v.columns, v.depth, v.a, v.a_stride, v.dst, v.columns,
            v.b_turned ? pack_columns(v.b, v.b_stride) : pack_rows(v.b, v.b_stride), {}, v.a_turned};
  if (v.has_bias || v.activation != 0)
    gemm.finish = [&](const Block& block) {
      for (int64_t row = block.row; row < block.row + block.rows; ++row) v.finish(row, block.column, block.columns);
    };
  multiply(gemm, pool);
}

Status check_matmul(const Call& call) {
  const int64_t batch = call.ints[0], m = call.ints[1], k = call.ints[2], n = call.ints[3];
  return Check(call)
      .sizes({batch, m, k, n})
      .holds("a", 0, {batch, m, k})
      .holds("b", 1, {batch, k, n})
      .holds("dst", 2, {batch, m, n})
      .status();
}

// Of whole numbers that wrap around: a row of `b` after the other.
template <typename T>
void multiply_whole(const Call& call, ThreadPool& pool) {
  using U = std::make_unsigned_t<T>;
  const int64_t batch = call.ints[0], m = call.ints[1], k = call.ints[2], n = call.ints[3];
  pool.shared(batch * m, k * n, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const U *a = call.buffers[0].as<U>() + row * k, *b = call.buffers[1].as<U>() + row / m * k * n;
      U* dst = call.buffers[2].as<U>() + row * n;
      std::fill_n(dst, n, U{0});
      for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < n; ++j) dst[j] += a[i] * b[i * n + j];
    }
  });
}

void run_matmul(const Call& call, ThreadPool& pool) {
  if (call.buffers[0].type == Type::i32) return multiply_whole<int32_t>(call, pool);
  if (call.buffers[0].type == Type::i64) return multiply_whole<int64_t>(call, pool);
  const int64_t batch = call.ints[0], m = call.ints[1], k = call.ints[2], n = call.ints[3];
  const auto product = [&](int64_t i) -> Gemm {
    return {m, n, k, call.buffers[0].as<float>() + i * m * k, k, call.buffers[2].as<float>() + i * m * n, n,
            pack_rows(call.buffers[1].as<float>() + i * k * n, n), {}};
  };
  if (batch < pool.threads()) {
    for (int64_t i = 0; i < batch; ++i) multiply(product(i), pool);
    return;
  }
  pool.each(batch, [&](int64_t i, int thread) {
    multiply_here(product(i), pool.scratch(thread, static_cast<size_t>(panel_floats())));
  }, batch * m * n * k);
}

}  // namespace

const Operation kProduct{"product", 4, 9, 2, check_product, run_product};
const Operation kMatmul{"matmul", 3, 4, 0, check_matmul, run_matmul, "nnn"};

}  // namespace pocketfarm::cpu
