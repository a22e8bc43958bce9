// Matrix product c = a * b by blocks; b is packed on the fly, so it need not exist as a matrix (im2col).
#pragma once

#include <cstdint>
#include <functional>

#include "backends/cpu/threads/thread_pool.h"

namespace pocketfarm::cpu {

struct Block {
  int64_t row, rows, column, columns;
};

struct Gemm {
  int64_t m, n, k;
  const float* a;  // (m, k), rows `lda` apart
  int64_t lda;
  float* c;  // (m, n), rows `ldc` apart
  int64_t ldc;
  // Writes b[first_k + i][column + j] to panel[i * width + j], zeros for j >= columns.
  std::function<void(int64_t first_k, int64_t ks, int64_t column, int64_t columns, int64_t width, float* panel)> pack;
  // Called once for every block of c when it is complete: bias, residual, activation.
  std::function<void(const Block& block)> finish;
  bool a_turned = false;  // a lies as (k, m)
};

void multiply(const Gemm& gemm, ThreadPool& pool);
// On the calling thread alone; `panels`: memory for so many floats.
void multiply_here(const Gemm& gemm, float* panels);
int64_t panel_floats();
// `pack` of a row-major (k, n) matrix, and of one that lies as (n, k); its rows are `ldb` apart.
std::function<void(int64_t, int64_t, int64_t, int64_t, int64_t, float*)> pack_rows(const float* b, int64_t ldb);
std::function<void(int64_t, int64_t, int64_t, int64_t, int64_t, float*)> pack_columns(const float* b, int64_t ldb);

}  // namespace pocketfarm::cpu
