#include "gemm.h"

#include <algorithm>
#include <cstring>

#include "kernel.h"
#include "square.h"
#include "backends/cpu/processor/instruction_set.h"

namespace pocketfarm::cpu {
namespace {

constexpr int64_t kDepth = 256;         // of k at a time: a panel stays in the first-level cache
constexpr int64_t kColumns = 128;       // of a block: its panels stay in the second-level cache
constexpr int64_t kMinRows = 32;        // of a block: packing must pay
constexpr int64_t kTasksPerThread = 3;  // for balance

int64_t round_up(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

void multiply_block(const Gemm& g, const Block& block, const GemmKernel& kernel, float* panels) {
  const int64_t width = kernel.columns, end = block.column + block.columns;
  for (int64_t k = 0; k < g.k; k += kDepth) {
    const int64_t ks = std::min(kDepth, g.k - k);
    for (int64_t column = block.column; column < end; column += width) {
      const int64_t columns = std::min(width, end - column);
      g.pack(k, ks, column, columns, width, panels);
      for (int64_t row = block.row; row < block.row + block.rows; row += kernel.rows) {
        const int64_t rows = std::min<int64_t>(kernel.rows, block.row + block.rows - row);
        const auto tile = g.a_turned ? kernel.turned_tile : kernel.tile;
        tile(g.a + (g.a_turned ? k * g.lda + row : row * g.lda + k), g.lda, static_cast<int>(rows), panels, ks,
             g.c + row * g.ldc + column, g.ldc, static_cast<int>(columns), k > 0);
      }
    }
  }
  if (g.finish) g.finish(block);
}

}  // namespace

const GemmKernel& gemm_kernel() {
#if defined(__x86_64__)
  if (instruction_set() == InstructionSet::avx512) return kGemmAvx512;
  if (instruction_set() == InstructionSet::avx2) return kGemmAvx2;
#endif
  return kGemmGeneric;
}

void multiply(const Gemm& g, ThreadPool& pool) {
  const GemmKernel& kernel = gemm_kernel();
  const int64_t width = std::min(round_up(g.n, kernel.columns), round_up(kColumns, kernel.columns));
  const int64_t across = (g.n + width - 1) / width;
  const int threads = pool.threads_for(g.m * g.n * g.k);
  const int64_t wanted = threads > 1 ? (kTasksPerThread * threads + across - 1) / across : 1;
  const int64_t down = std::clamp<int64_t>(g.m / kMinRows, 1, wanted);
  const int64_t height = round_up((g.m + down - 1) / down, kernel.rows);
  const int64_t real_down = (g.m + height - 1) / height;
  pool.each(across * real_down, [&](int64_t task, int thread) {
    const int64_t row = task / across * height, column = task % across * width;
    const Block block{row, std::min(height, g.m - row), column, std::min(width, g.n - column)};
    multiply_block(g, block, kernel, pool.scratch(thread, static_cast<size_t>(panel_floats())));
  }, g.m * g.n * g.k);
}

int64_t panel_floats() { return kDepth * gemm_kernel().columns; }

void multiply_here(const Gemm& g, float* panels) { multiply_block(g, {0, g.m, 0, g.n}, gemm_kernel(), panels); }

std::function<void(int64_t, int64_t, int64_t, int64_t, int64_t, float*)> pack_rows(const float* b, int64_t ldb) {
  return [b, ldb](int64_t first_k, int64_t ks, int64_t column, int64_t columns, int64_t width, float* panel) {
    for (int64_t i = 0; i < ks; ++i, panel += width) {
      std::memcpy(panel, b + (first_k + i) * ldb + column, static_cast<size_t>(columns) * sizeof(float));
      std::fill(panel + columns, panel + width, 0.0f);
    }
  };
}

// In squares: a line of the cache that was fetched is used whole, and the lines that are written stay.
std::function<void(int64_t, int64_t, int64_t, int64_t, int64_t, float*)> pack_columns(const float* b, int64_t ldb) {
  return [b, ldb](int64_t first_k, int64_t ks, int64_t column, int64_t columns, int64_t width, float* panel) {
    for (int64_t j = 0; j < width; j += kSide)
      for (int64_t i = 0; i < ks; i += kSide) {
        const float* from = b + (column + j) * ldb + first_k + i;
        if (j + kSide <= columns && i + kSide <= ks) {
          turn_square(from, ldb, panel + i * width + j, width);
          continue;
        }
        for (int64_t down = i; down < std::min(i + kSide, ks); ++down)
          for (int64_t across = j; across < std::min(j + kSide, width); ++across)
            panel[down * width + across] = across < columns ? from[(across - j) * ldb + down - i] : 0.0f;
      }
  };
}

}  // namespace pocketfarm::cpu
