// dense with weights in blocks of sixteen outputs: they are read once, in order, for all rows that fit in registers.
#include <algorithm>
#include <cstring>

#include "backends/cpu/operations/dense_call.h"
#include "nc16.h"
#include "kernels.h"

namespace pocketfarm::cpu {
namespace {

constexpr int64_t kTasksPerThread = 4;  // for balance
constexpr int64_t kGatherWork = 4;      // of an element
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

// Tile `tile` of `tiles` has the rows from this one on; they lie one after the other in the panels.
int64_t first_row(const DenseCall& v, int64_t tile, int64_t tiles) { return v.n * tile / tiles; }

// Rows [first, first + count) as a product's values: blocks of sixteen columns, row by row.
void gather_rows(const DenseCall& v, int64_t first, int64_t count, float* panel) {
  for (int64_t begin = 0; begin < v.c; begin += kBlock)
    for (int64_t row = first; row < first + count; ++row, panel += kBlock)
      std::memcpy(panel, v.src + row * v.c + begin, static_cast<size_t>(std::min(kBlock, v.c - begin)) * sizeof(float));
}

void multiply_tile(const DenseCall& v, const Nc16Kernels& kernels, const float* values, int64_t row, int64_t rows,
                   int64_t block, int64_t blocks, bool ahead) {
  float tile[kMostTile];
  Product product{};
  product.values = values;
  product.step = kBlock;
  product.entry_stride = rows * kBlock;
  product.entries = product.run = v.c / kBlock;
  product.tail_lanes = static_cast<int>(v.c % kBlock);
  product.tail_entries = product.tail_lanes > 0 ? 1 : 0;
  product.weight = v.weight + block * v.c * kBlock;
  product.weight_stride = v.c * kBlock;
  product.ahead = ahead ? blocks * product.weight_stride : 0;
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

float* gather(const DenseCall& v, int64_t tiles, int64_t width, ThreadPool& pool) {
  float* panels = pool.scratch(0, static_cast<size_t>(width * v.n));
  pool.each(tiles, [&](int64_t tile, int) {
    const int64_t row = first_row(v, tile, tiles);
    gather_rows(v, row, first_row(v, tile + 1, tiles) - row, panels + row * width);
  }, kGatherWork * v.n * v.c);
  return panels;
}

// The weights of two blocks stay in the second-level cache while all tiles of rows meet them.
void run(const Call& call, ThreadPool& pool) {
  const DenseCall v(call);
  const Nc16Kernels& kernels = nc16_kernels();
  const int64_t blocks = blocks_of(v.m), pairs = (blocks + kernels.blocks - 1) / kernels.blocks;
  const int64_t tiles = (v.n + kernels.pixels - 1) / kernels.pixels, width = blocks_of(v.c) * kBlock;
  const int64_t work = v.n * v.c * v.m;
  const int threads = pool.threads_for(work);
  const int64_t wanted = threads > 1 ? kTasksPerThread * threads : 1;
  // Threads share out rows where there are enough: they are those that each wrote in the step before.
  const int64_t across = tiles >= 2 * threads ? threads : 1, down = std::min(pairs, std::max<int64_t>(1, wanted / across));
  const float* panels = v.n == 1 ? v.src : gather(v, tiles, width, pool);  // a row alone lies as it should
  pool.each(down * across, [&](int64_t task, int) {
    const int64_t group = task / down, part = task % down, first = tiles * group / across, last = tiles * (group + 1) / across;
    for (int64_t pair = pairs * part / down; pair < pairs * (part + 1) / down; ++pair)
      for (int64_t tile = first; tile < last; ++tile) {
        const int64_t block = pair * kernels.blocks, row = first_row(v, tile, tiles);
        multiply_tile(v, kernels, panels + row * width, row, first_row(v, tile + 1, tiles) - row, block,
                      std::min<int64_t>(kernels.blocks, blocks - block), tile == first);
      }
  }, work);
}

}  // namespace

const Operation kDenseNc16{"dense_nc16", 4, 5, 2, check, run};

}  // namespace pocketfarm::cpu
