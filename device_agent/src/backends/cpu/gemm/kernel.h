// The inner kernel of the matrix product, one for each instruction set.
#pragma once

#include <cstdint>

namespace pocketfarm::cpu {

struct GemmKernel {
  const char* name;
  int rows;     // of a tile, at most
  int columns;  // of a panel
  // c[r][j] (+)= sum over i < k of a[r * lda + i] * panel[i * columns + j], for r < `rows_here`, j < `columns_here`.
  using Tile = void(const float* a, int64_t lda, int rows_here, const float* panel, int64_t k, float* c, int64_t ldc,
                    int columns_here, bool accumulate);
  Tile* tile;
  // The same of a[i * lda + r]: neighbours of a column of `a` side by side.
  Tile* turned_tile;
};

extern const GemmKernel kGemmGeneric;
#if defined(__x86_64__)
extern const GemmKernel kGemmAvx2, kGemmAvx512;
#endif

// The best kernel of this processor.
const GemmKernel& gemm_kernel();

}  // namespace pocketfarm::cpu
