// dense with weights in blocks of sixteen outputs: they are read once, in order, for all rows that fit in registers.
#include <algorithm>
#include <cstring>

#include "backends/cpu/operations/dense_call.h"
#include "nc16.h"
#include "kernels.h"

namespace pocketfarm::cpu {
namespace {

constexpr int64_t kTasksPerThread = 4;  // for balance
constexpr int64_t kMostTile = 14 * 2 * kBlock;

Status check(const Call& call) {
  const DenseCall v(call);
  return Check(call)
      .sizes({v.n, v.c, v.m})
      .range("activation", v.activation, 0, kLastActivation)
      .holds("src", 0, {v.n, v.c})
      .holds("weight", 1, {blocks_of(v.m), v.c, kBlock})
      .holds("bias", 2, {v.has_bias ? blocks_of(v.m) * kBlock : 1})
      .holds("dst", 3, {v.n, v.m})
      .status();
}

// Rows [first, first + count) as a product's values: blocks of sixteen columns, row by row.
void gather_rows(const DenseCall& v, int64_t first, int64_t count, float* panel) {
  for (int64_t begin = 0; begin < v.c; begin += kBlock)
    for (int64_t row = first; row < first + count; ++row, panel += kBlock)
      std::memcpy(panel, v.src + row * v.c + begin, static_cast<size_t>(std::min(kBlock, v.c - begin)) * sizeof(float));
}

void multiply_tile(const DenseCall& v, const Nc16Kernels& kernels, const float* values, int64_t row, int64_t rows,
                   int64_t block, int64_t blocks) {
  float tile[kMostTile];
  Product product{};
  product.values = values;
  product.step = kBlock;
  product.entry_stride = rows * kBlock;
  product.entries = v.c / kBlock;
  product.tail_lanes = static_cast<int>(v.c % kBlock);
  product.tail_entries = product.tail_lanes > 0 ? 1 : 0;
  product.weight = v.weight + block * v.c * kBlock;
  product.weight_stride = v.c * kBlock;
  product.blocks = static_cast<int>(blocks);
  product.pixels = static_cast<int>(rows);
  product.out = tile;
  product.out_stride = rows * kBlock;
  product.epilogue.bias = v.has_bias ? v.bias + block * kBlock : nullptr;
  kernels.product(product);
  activate(tile, blocks * rows * kBlock, v.activation, v.lo, v.hi);
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t column = (block + b) * kBlock, columns = std::min(kBlock, v.m - column);
    for (int64_t r = 0; r < rows; ++r)
      std::memcpy(v.dst + (row + r) * v.m + column, tile + (b * rows + r) * kBlock, static_cast<size_t>(columns) * sizeof(float));
  }
}

void run(const Call& call, ThreadPool& pool) {
  const DenseCall v(call);
  const Nc16Kernels& kernels = nc16_kernels();
  const int64_t blocks = blocks_of(v.m), pairs = (blocks + kernels.blocks - 1) / kernels.blocks;
  const int64_t tasks = std::min(pairs, pool.threads() > 1 ? kTasksPerThread * pool.threads() : 1);
  float* panel = pool.scratch(0, static_cast<size_t>(blocks_of(v.c) * kBlock * std::min<int64_t>(v.n, kernels.pixels)));
  for (int64_t row = 0; row < v.n; row += kernels.pixels) {
    const int64_t rows = std::min<int64_t>(kernels.pixels, v.n - row);
    gather_rows(v, row, rows, panel);
    pool.each(tasks, [&](int64_t task, int) {
      for (int64_t pair = pairs * task / tasks; pair < pairs * (task + 1) / tasks; ++pair) {
        const int64_t block = pair * kernels.blocks;
        multiply_tile(v, kernels, panel, row, rows, block, std::min<int64_t>(kernels.blocks, blocks - block));
      }
    });
  }
}

}  // namespace

const Operation kDenseNc16{"dense_nc16", 4, 5, 2, check, run};

}  // namespace pocketfarm::cpu
