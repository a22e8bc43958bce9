// dense in 8 bits: each row by its own range, all by theirs, or by given steps.
#include <algorithm>
#include <numeric>
#include <vector>

#include "quantized.h"
#include "backends/cpu/nc16/nc16.h"
#include "backends/cpu/operations/operation.h"

namespace pocketfarm::cpu {
namespace {

constexpr int64_t kTasksPerThread = 4;  // for balance
constexpr int64_t kFaster = 2;          // products of 8 bits in the time of one of fp32, at least

struct Dense {
  const float *src, *scales, *bias;
  const int8_t* weight;
  const int32_t* sums;
  uint8_t* values;  // (n, depth)
  float* dst;
  int64_t n, c, m, depth;
  bool has_bias, has_offsets;
  Int8By by;
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
    by = static_cast<Int8By>(call.ints[5]);
    steps = by == Int8By::given ? given_steps(call.floats[2], call.ints[6]) : Int8Steps{};
    has_offsets = call.ints[7] != 0;
  }
};

Status check(const Call& call) {
  const Dense v(call);
  return Check(call)
      .sizes({v.n, v.c, v.m})
      .range("c", v.c, 1, kInt8MostDepth)
      .range("activation", v.activation, 0, kLastActivation)
      .range("steps", call.ints[5], 0, 2)
      .that(v.by != Int8By::given || call.floats[2] > 0, "a given scale must be positive")
      .range("zero", call.ints[6], 0, 255)
      .range("c with offsets", v.has_offsets ? 2 * v.c : 1, 1, kInt8MostDepth)
      .holds("src", 0, {v.n, v.c})
      .holds("weight", 1, {blocks_of(v.m), v.depth, kBlock})
      .holds("scale", 2, {blocks_of(v.m), kBlock})
      .holds("sums", 3, {v.has_offsets ? 2 : 1, blocks_of(v.m), kBlock})
      .holds("bias", 4, {v.has_bias ? blocks_of(v.m) * kBlock : 1})
      .holds("values", 5, {v.n, v.depth})
      .holds("dst", 6, {v.n, v.m})
      .status();
}

Int8Row quantize_row(const Dense& v, const Int8Kernels& kernels, const Int8Steps& of_all, int64_t row) {
  Int8Row made{of_all, 0};
  if (v.by == Int8By::own_range) {
    Int8Range range;
    kernels.range(v.src + row * v.c, v.c, &range);
    made.steps = steps_of(range);
  }
  uint8_t* to = v.values + row * v.depth;
  kernels.quantize(v.src + row * v.c, v.c, made.steps, to);
  std::fill(to + v.c, to + v.depth, uint8_t{0});
  if (v.has_offsets) made.sum = std::accumulate(to, to + v.c, 0) - static_cast<int32_t>(v.c) * made.steps.zero;
  return made;
}

void multiply_tile(const Dense& v, const Int8Kernels& kernels, const Int8Row* made, int64_t row, int64_t rows,
                   int64_t block, int64_t blocks) {
  const int64_t start_of_run = 0, column = block * kBlock, width = std::min(blocks * kBlock, v.m - column);
  int32_t sums[kInt8MostPixels * kInt8MostBlocks * kBlock];
  float tile[kInt8MostPixels * kInt8MostBlocks * kBlock];
  kernels.product({v.values + row * v.depth, v.depth, &start_of_run, 1, v.depth / 4, v.weight + column * v.depth,
                   kBlock * v.depth, static_cast<int>(rows), static_cast<int>(blocks), sums});
  const bool whole = width == blocks * kBlock;
  float* const dst = v.dst + row * v.m + column;
  kernels.finish_tile({sums, made + row, static_cast<int>(rows), static_cast<int>(blocks), v.sums + column,
                       v.has_offsets ? v.sums + blocks_of(v.m) * kBlock + column : nullptr, v.scales + column,
                       v.has_bias ? v.bias + column : nullptr, whole ? dst : tile, whole ? v.m : blocks * kBlock});
  for (int64_t r = 0; r < rows && !(whole && v.activation == 0); ++r) {
    if (!whole) std::copy_n(tile + r * blocks * kBlock, width, dst + r * v.m);
    activate(dst + r * v.m, width, v.activation, v.lo, v.hi);
  }
}

void run(const Call& call, ThreadPool& pool) {
  const Dense v(call);
  const Int8Kernels& kernels = int8_kernels();
  Int8Steps of_all = v.steps;
  if (v.by == Int8By::whole_range) {
    Int8Range range;
    widen(kernels, pool, v.src, v.n * v.c, &range);
    of_all = dynamic_steps(range);
  }
  std::vector<Int8Row> made(static_cast<size_t>(v.n));
  pool.each(v.n, [&](int64_t row, int) { made[static_cast<size_t>(row)] = quantize_row(v, kernels, of_all, row); }, v.n * v.c);
  const int64_t blocks = blocks_of(v.m), pairs = (blocks + kernels.blocks - 1) / kernels.blocks;
  const int64_t work = v.n * v.depth * v.m / kFaster, threads = pool.threads_for(work);
  const int64_t tasks = std::min(pairs, threads > 1 ? kTasksPerThread * threads : 1);
  pool.each(tasks, [&](int64_t task, int) {
    for (int64_t pair = pairs * task / tasks; pair < pairs * (task + 1) / tasks; ++pair)
      for (int64_t row = 0; row < v.n; row += kernels.pixels)
        multiply_tile(v, kernels, made.data(), row, std::min<int64_t>(kernels.pixels, v.n - row), pair * kernels.blocks,
                      std::min<int64_t>(kernels.blocks, blocks - pair * kernels.blocks));
  }, work);
}

}  // namespace

const Operation kDenseInt8{"dense_int8", 7, 8, 3, check, run, "fbfifuf"};

}  // namespace pocketfarm::cpu
