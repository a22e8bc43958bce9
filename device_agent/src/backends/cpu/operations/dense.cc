// dense and matmul.
#include <algorithm>

#include "dense_call.h"
#include "backends/cpu/gemm/gemm.h"

namespace pocketfarm::cpu {
namespace {

constexpr int64_t kMinGemmRows = 4;  // rows from which the matrix product pays
constexpr int64_t kRowWork = 4;      // of a weight that is read for one row only

Status check_dense(const Call& call) {
  const DenseCall v(call);
  return Check(call)
      .sizes({v.n, v.c, v.m})
      .range("activation", v.activation, 0, kLastActivation)
      .holds("src", 0, {v.n, v.c})
      .holds("weight", 1, {v.c, v.m})
      .holds("bias", 2, {v.has_bias ? v.m : 1})
      .holds("dst", 3, {v.n, v.m})
      .status();
}

void finish(const DenseCall& v, int64_t row, int64_t begin, int64_t count) {
  float* out = v.dst + row * v.m + begin;
  if (v.has_bias)
    for (int64_t i = 0; i < count; ++i) out[i] += v.bias[begin + i];
  activate(out, count, v.activation, v.lo, v.hi);
}

// One row: reads the weights once, in order.
void vector_matrix(const DenseCall& v, int64_t row, int64_t begin, int64_t end) {
  float* out = v.dst + row * v.m;
  std::fill(out + begin, out + end, 0.0f);
  for (int64_t i = 0; i < v.c; ++i) {
    const float factor = v.src[row * v.c + i];
    const float* weight = v.weight + i * v.m;
    for (int64_t j = begin; j < end; ++j) out[j] += factor * weight[j];
  }
  finish(v, row, begin, end - begin);
}

void run_dense(const Call& call, ThreadPool& pool) {
  const DenseCall v(call);
  if (v.n < kMinGemmRows) {
    for (int64_t row = 0; row < v.n; ++row)
      pool.shared(v.m, kRowWork * v.c, [&](int64_t begin, int64_t end) { vector_matrix(v, row, begin, end); });
    return;
  }
  Gemm gemm{v.n, v.m, v.c, v.src, v.c, v.dst, v.m, pack_rows(v.weight, v.m), {}};
  gemm.finish = [&](const Block& b) {
    for (int64_t row = b.row; row < b.row + b.rows; ++row) finish(v, row, b.column, b.columns);
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

const Operation kDense{"dense", 4, 5, 2, check_dense, run_dense};
const Operation kMatmul{"matmul", 3, 4, 0, check_matmul, run_matmul, "nnn"};

}  // namespace pocketfarm::cpu
