// dense in 8 bits: each row by its own range.
#include <algorithm>
#include <cstring>
#include <vector>

#include "quantized.h"
#include "backends/cpu/nc16/nc16.h"
#include "backends/cpu/operations/operation.h"

namespace pocketfarm::cpu {
namespace {

constexpr int64_t kTasksPerThread = 4;  // for balance

struct Dense {
  const float *src, *scales, *bias;
  const int8_t* weight;
  const int32_t* sums;
  uint8_t* values;  // (n, depth)
  float* dst;
  int64_t n, c, m, depth;
  bool has_bias, steps_given;
  Int8Steps steps;  // where they are given
  int32_t activation;
  float lo, hi;

  explicit Dense(const Call& call) {
    src = call.buffers[0].as<float>(), scales = call.buffers[2].as<float>(), bias = call.buffers[4].as<float>(), dst = call.buffers[6].as<float>();
    weight = call.buffers[1].as<int8_t>();
    sums = call.buffers[3].as<int32_t>();
    values = call.buffers[5].as<uint8_t>();
    n = call.ints[0], c = call.ints[1], m = call.ints[2], has_bias = call.ints[3] != 0, activation = call.ints[4];
    depth = (c + 3) / 4 * 4;
    lo = call.floats[0], hi = call.floats[1];
    steps_given = call.ints[5] != 0;
    steps = steps_given ? given_steps(call.floats[2], call.ints[6]) : Int8Steps{};
  }
};

Status check(const Call& call) {
  const Dense v(call);
  return Check(call)
      .sizes({v.n, v.c, v.m})
      .range("c", v.c, 1, kInt8MostDepth)
      .range("activation", v.activation, 0, kLastActivation)
      .that(!v.steps_given || call.floats[2] > 0, "a given scale must be positive")
      .range("zero", call.ints[6], 0, 255)
      .holds("src", 0, {v.n, v.c})
      .holds("weight", 1, {blocks_of(v.m), v.depth, kBlock})
      .holds("scale", 2, {blocks_of(v.m), kBlock})
      .holds("sums", 3, {blocks_of(v.m), kBlock})
      .holds("bias", 4, {v.has_bias ? blocks_of(v.m) * kBlock : 1})
      .holds("values", 5, {v.n, v.depth})
      .holds("dst", 6, {v.n, v.m})
      .status();
}

Int8Steps quantize_row(const Dense& v, const Int8Kernels& kernels, int64_t row) {
  Int8Steps steps = v.steps;
  if (!v.steps_given) {
    Int8Range range;
    kernels.range(v.src + row * v.c, v.c, &range);
    steps = steps_of(range);
  }
  uint8_t* to = v.values + row * v.depth;
  kernels.quantize(v.src + row * v.c, v.c, steps, to);
  std::fill(to + v.c, to + v.depth, uint8_t{0});
  return steps;
}

void multiply_tile(const Dense& v, const Int8Kernels& kernels, const Int8Steps* steps, int64_t row, int64_t rows,
                   int64_t block, int64_t blocks) {
  const int64_t start_of_run = 0;
  int32_t sums[kInt8MostPixels * kInt8MostBlocks * kBlock], start[kBlock];
  float factor[kBlock], tile[kBlock];
  kernels.product({v.values + row * v.depth, v.depth, &start_of_run, 1, v.depth / 4, v.weight + block * kBlock * v.depth,
                   kBlock * v.depth, static_cast<int>(rows), static_cast<int>(blocks), sums});
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t column = (block + b) * kBlock;
    for (int64_t r = 0; r < rows; ++r) {
      correct(steps[row + r], v.sums + column, v.scales + column, start, factor);
      Int8Finish how{};
      how.start = start, how.factor = factor, how.bias = v.has_bias ? v.bias + column : nullptr, how.to.floats = tile;
      kernels.finish(sums + (b * rows + r) * kBlock, 1, how);
      activate(tile, kBlock, v.activation, v.lo, v.hi);
      std::memcpy(v.dst + (row + r) * v.m + column, tile, static_cast<size_t>(std::min(kBlock, v.m - column)) * sizeof(float));
    }
  }
}

void run(const Call& call, ThreadPool& pool) {
  const Dense v(call);
  const Int8Kernels& kernels = int8_kernels();
  std::vector<Int8Steps> steps(static_cast<size_t>(v.n));
  pool.each(v.n, [&](int64_t row, int) { steps[static_cast<size_t>(row)] = quantize_row(v, kernels, row); });
  const int64_t blocks = blocks_of(v.m), pairs = (blocks + kernels.blocks - 1) / kernels.blocks;
  const int64_t tasks = std::min(pairs, pool.threads() > 1 ? kTasksPerThread * pool.threads() : 1);
  pool.each(tasks, [&](int64_t task, int) {
    for (int64_t pair = pairs * task / tasks; pair < pairs * (task + 1) / tasks; ++pair)
      for (int64_t row = 0; row < v.n; row += kernels.pixels)
        multiply_tile(v, kernels, steps.data(), row, std::min<int64_t>(kernels.pixels, v.n - row), pair * kernels.blocks,
                      std::min<int64_t>(kernels.blocks, blocks - pair * kernels.blocks));
  });
}

}  // namespace

const Operation kDenseInt8{"dense_int8", 7, 7, 3, check, run, "fbfifuf"};

}  // namespace pocketfarm::cpu
