// dense with weights in blocks of sixteen outputs: they are read once, in order, for all rows that fit in registers.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "backends/cpu/elements/kernels.h"
#include "backends/cpu/operations/dense_call.h"
#include "nc16.h"
#include "kernels.h"
#include "backends/cpu/packed/call.h"

namespace pocketfarm::cpu {
namespace {

constexpr int64_t kTasksPerThread = 4;  // for balance
// Less work is one task a thread, as a recurrent net's step is: each meets the weights that its cache kept from the step before.
constexpr int64_t kBrief = int64_t{1} << 20;
constexpr int64_t kGatherWork = 4;      // of an element
constexpr int64_t kMostTile = 14 * 2 * kBlock;
// Rows of so many inputs, and together so many floats that no cache keeps them, are taken in parts of kPart inputs, as many
// rows together as the second-level cache keeps, and their sums do not take more than kMostSums floats for it.
constexpr int64_t kDeep = 4096, kMuch = int64_t{1} << 22, kPart = 512, kPartFloats = int64_t{1} << 17;
constexpr int64_t kMostSums = int64_t{1} << 21;

Check& check_rows(Check& check, const DenseCall& v) {
  return check.sizes({v.n, v.c, v.m})
      .range("activation", v.activation, 0, kLastActivation)
      .holds("src", 0, {v.n, v.c})
      .range("joins", v.joins, 0, 2)
      .holds("bias", 2, {v.has_bias ? blocks_of(v.m) * kBlock : 1})
      .holds("beside", 3, {v.joins ? v.n : 1, v.joins ? v.m : 1})
      .holds("norm", 4, {v.normed ? v.c : 1})
      .holds("dst", 5, {v.n, v.m});
}

Status check(const Call& call) {
  const DenseCall v(call);
  Check check(call);
  return check_rows(check, v).holds("weight", 1, {blocks_of(v.m), v.c, kBlock}).status();
}

// Of few bits, columns of weights that are floats at once: of a single tile of rows the first-level cache keeps them.
int64_t unpacked_columns(const DenseCall& v) {
  return v.n <= nc16_kernels().pixels ? kMostPackedBlock : (v.c + kMostPackedBlock - 1) / kMostPackedBlock * kMostPackedBlock;
}

// Tile `tile` of `tiles` has the rows from this one on; they lie one after the other in the panels.
int64_t first_row(const DenseCall& v, int64_t tile, int64_t tiles) { return v.n * tile / tiles; }

// Row `row` of a call, times `norm` over the root of its mean square where it is normed; `to` has room for it.
const float* row_of(const DenseCall& v, int64_t row, float* to) {
  const float* from = v.src + row * v.c;
  if (!v.normed) return from;
  element_kernels().normalise_row(from, to, v.c, {false, v.epsilon, 0, v.norm, nullptr});
  return to;
}

// Rows [first, first + count) as a product's values: blocks of sixteen columns, row by row.
void gather_rows(const DenseCall& v, int64_t first, int64_t count, float* panel) {
  std::vector<float> normed(static_cast<size_t>(v.normed ? v.c : 0));
  for (int64_t row = 0; row < count; ++row) {
    const float* from = row_of(v, first + row, normed.data());
    float* to = panel + row * kBlock;
    for (int64_t begin = 0; begin < v.c; begin += kBlock, to += count * kBlock)
      std::memcpy(to, from + begin, static_cast<size_t>(std::min(kBlock, v.c - begin)) * sizeof(float));
  }
}

// Rows of a tile, the blocks of outputs that they meet, and how far the product goes along the inputs.
struct Step {
  const float* values;
  int64_t row, rows, block, blocks, first, last;
  bool ahead;
  const float* weight;
  int64_t weight_stride;  // from block to block
};

// Into `tile`, (blocks, rows, 16); a step that is not the first adds to what lies there.
void multiply(const DenseCall& v, const Step& step, float* tile) {
  Product product{};
  product.values = step.values + step.first * step.rows;
  product.step = kBlock;
  product.entry_stride = step.rows * kBlock;
  product.entries = product.run = (step.last - step.first) / kBlock;
  product.tail_lanes = static_cast<int>((step.last - step.first) % kBlock);
  product.tail_entries = product.tail_lanes > 0 ? 1 : 0;
  product.weight = step.weight;
  product.weight_stride = step.weight_stride;
  product.ahead = step.ahead ? step.blocks * product.weight_stride : 0;
  product.blocks = static_cast<int>(step.blocks);
  product.pixels = static_cast<int>(step.rows);
  product.out = tile;
  product.out_stride = step.rows * kBlock;
  if (step.first > 0) {
    product.epilogue.residual = tile, product.epilogue.residual_stride = product.out_stride;
  } else if (v.has_bias) {
    product.epilogue.bias = v.bias + step.block * kBlock;
  }
  nc16_kernels().product(product);
}

void finish(const DenseCall& v, const Step& step, float* tile) {
  activate(tile, step.blocks * step.rows * kBlock, v.activation, v.lo, v.hi);
  for (int64_t b = 0; b < step.blocks; ++b) {
    const int64_t column = (step.block + b) * kBlock, columns = std::min(kBlock, v.m - column);
    for (int64_t r = 0; r < step.rows; ++r) {
      const int64_t at = (step.row + r) * v.m + column;
      float* found = tile + (b * step.rows + r) * kBlock;
      if (v.joins == 1) for (int64_t i = 0; i < columns; ++i) found[i] += v.beside[at + i];
      if (v.joins == 2) for (int64_t i = 0; i < columns; ++i) found[i] *= v.beside[at + i];
      std::memcpy(v.dst + at, found, static_cast<size_t>(columns) * sizeof(float));
    }
  }
}

// Tiles of rows times pairs of blocks, both from a first one to a last.
struct Task {
  int64_t first_tile, last_tile, first_pair, last_pair;
};

class Layer {
 public:
  Layer(const DenseCall& v, const float* panels, int64_t tiles, int64_t width)
      : v_(v), panels_(panels), tiles_(tiles), width_(width), pair_(nc16_kernels().blocks) {}

  // The weights of two blocks stay in the second-level cache while all tiles of rows meet them.
  void run(const Task& task) const {
    float tile[kMostTile];
    for (int64_t pair = task.first_pair; pair < task.last_pair; ++pair)
      for (int64_t i = task.first_tile; i < task.last_tile; ++i) {
        const Step whole = step(i, pair, 0, v_.c, i == task.first_tile);
        multiply(v_, whole, tile);
        finish(v_, whole, tile);
      }
  }

  // Weights of few bits are floats in `memory`, for all tiles of rows, or where there is one, as many at once as the first-level
  // cache keeps.
  void run_packed(const Task& task, const Packed& packed, float* memory) const {
    float tile[kMostTile];
    const auto* bytes = reinterpret_cast<const uint8_t*>(v_.weight);
    const int64_t columns = unpacked_columns(v_), stride = columns * kBlock, row = packed.blocks(v_.c) * packed.bytes();
    for (int64_t pair = task.first_pair; pair < task.last_pair; ++pair)
      for (int64_t first = 0; first < v_.c; first += columns)
        for (int64_t i = task.first_tile; i < task.last_tile; ++i) {
          Step part = step(i, pair, first, std::min(v_.c, first + columns), false);
          part.weight = memory, part.weight_stride = stride;
          for (int64_t b = 0; b < part.blocks && i == task.first_tile; ++b)
            nc16_kernels().unpack(packed, bytes + (part.block + b) * row + first / packed.block * packed.bytes(),
                                  packed.blocks(part.last - first), memory + b * stride);
          multiply(v_, part, tile);
          if (part.last == v_.c) finish(v_, part, tile);
        }
  }

  // Few rows: codes are multiplied as they are, and the sums of a row's groups say how far their products were moved.
  void run_packed_rows(const Task& task, const Packed& packed) const {
    float tile[kMostTile];
    const int64_t row = packed.blocks(v_.c) * packed.bytes();
    for (int64_t pair = task.first_pair; pair < task.last_pair; ++pair) {
      const Step whole = step(0, pair, 0, v_.c, false);
      for (int64_t b = 0; b < whole.blocks; ++b)
        nc16_kernels().packed_rows(packed, reinterpret_cast<const uint8_t*>(v_.weight) + (whole.block + b) * row, panels_, v_.n,
                                   packed.blocks(v_.c), tile + b * v_.n * kBlock);
      if (v_.has_bias)
        for (int64_t i = 0; i < whole.blocks * v_.n * kBlock; ++i) tile[i] += v_.bias[(whole.block + i / kBlock / v_.n) * kBlock + i % kBlock];
      finish(v_, whole, tile);
    }
  }

  // Where they are too many for it: parts of the rows stay there while all weights of these inputs meet them.
  void run_in_parts(const Task& task) const {
    const int64_t kept = (task.last_pair - task.first_pair) * kMostTile;  // sums of one tile of rows
    const int64_t together = std::max<int64_t>(1, std::min(kPartFloats / (kPart * nc16_kernels().pixels), kMostSums / kept));
    std::vector<float> sums(static_cast<size_t>(together * kept));
    for (int64_t begin = task.first_tile; begin < task.last_tile; begin += together) {
      const int64_t end = std::min(task.last_tile, begin + together);
      for (int64_t first = 0; first < v_.c; first += kPart) {
        float* tile = sums.data();
        for (int64_t pair = task.first_pair; pair < task.last_pair; ++pair)
          for (int64_t i = begin; i < end; ++i, tile += kMostTile) {
            const Step part = step(i, pair, first, std::min(v_.c, first + kPart), false);
            multiply(v_, part, tile);
            if (part.last == v_.c) finish(v_, part, tile);
          }
      }
    }
  }

 private:
  Step step(int64_t tile, int64_t pair, int64_t first, int64_t last, bool ahead) const {
    const int64_t row = first_row(v_, tile, tiles_), block = pair * pair_;
    return {panels_ + row * width_, row, first_row(v_, tile + 1, tiles_) - row, block,
            std::min(pair_, blocks_of(v_.m) - block), first, last, ahead, v_.weight + (block * v_.c + first) * kBlock, v_.c * kBlock};
  }

  const DenseCall& v_;
  const float* const panels_;
  const int64_t tiles_, width_, pair_;
};

float* gather(const DenseCall& v, int64_t tiles, int64_t width, ThreadPool& pool, int64_t behind) {
  float* panels = pool.scratch(0, static_cast<size_t>(width * v.n + behind));
  pool.each(tiles, [&](int64_t tile, int) {
    const int64_t row = first_row(v, tile, tiles);
    gather_rows(v, row, first_row(v, tile + 1, tiles) - row, panels + row * width);
  }, kGatherWork * v.n * v.c);
  return panels;
}

// The row of a call, normed where it is to be.
const float* only_row(const DenseCall& v, ThreadPool& pool) {
  return v.normed ? row_of(v, 0, pool.scratch(0, static_cast<size_t>(v.c))) : v.src;
}

// The rows of a call, each with zeros up to whole blocks, and behind it the sums of its groups.
const float* gather_summed(const DenseCall& v, const Packed& packed, ThreadPool& pool) {
  const int64_t columns = packed.blocks(v.c) * packed.block, stride = packed.summed(packed.blocks(v.c));
  float* const rows = pool.scratch(0, static_cast<size_t>(v.n * stride));
  for (float* row = rows; row < rows + v.n * stride; row += stride) {
    const float* from = row_of(v, (row - rows) / stride, row);
    if (from != row) std::copy_n(from, v.c, row);
    std::fill(row + v.c, row + columns, 0.0f);
    for (int64_t first = 0; first < columns; first += packed.group) {
      float parts[kBlock] = {};
      for (int64_t k = 0; k < packed.group; ++k) parts[k % kBlock] += row[first + k];
      row[columns + first / packed.group] = std::accumulate(parts, parts + kBlock, 0.0f);
    }
  }
  return rows;
}

void compute(const DenseCall& v, const Packed* packed, ThreadPool& pool) {
  const Nc16Kernels& kernels = nc16_kernels();
  const int64_t blocks = blocks_of(v.m), pairs = (blocks + kernels.blocks - 1) / kernels.blocks;
  const int64_t tiles = (v.n + kernels.pixels - 1) / kernels.pixels, width = blocks_of(v.c) * kBlock;
  const int64_t work = v.n * v.c * v.m;
  const int threads = pool.threads_for(work);
  const int64_t wanted = threads > 1 ? (work < kBrief ? 1 : kTasksPerThread) * threads : 1;
  const bool in_parts = !packed && v.c >= kDeep && v.n * v.c >= kMuch && tiles >= 2 * threads;
  // Threads share out rows where there are enough: they are those that each wrote in the step before.
  const int64_t across = !packed && tiles >= 2 * threads ? threads : 1;
  const int64_t down = in_parts ? 1 : std::min(pairs, std::max<int64_t>(1, wanted / across));
  const bool few = packed && v.n <= std::min<int64_t>(kPackedRows, kernels.pixels);
  const int64_t gathered = v.n == 1 ? 0 : width * v.n, unpacked = packed ? kernels.blocks * unpacked_columns(v) * kBlock : 0;
  // A row alone lies as it should.
  const float* panels = few ? gather_summed(v, *packed, pool) : v.n > 1 ? gather(v, tiles, width, pool, unpacked) : only_row(v, pool);
  const Layer layer(v, panels, tiles, width);
  pool.each(down * across, [&](int64_t i, int thread) {
    const int64_t group = i / down, part = i % down;
    const Task task{tiles * group / across, tiles * (group + 1) / across, pairs * part / down, pairs * (part + 1) / down};
    if (few) return layer.run_packed_rows(task, *packed);
    if (packed) return layer.run_packed(task, *packed, pool.scratch(thread, static_cast<size_t>(gathered + unpacked)) + gathered);
    in_parts ? layer.run_in_parts(task) : layer.run(task);
  }, work);
}

void run(const Call& call, ThreadPool& pool) { compute(DenseCall(call), nullptr, pool); }

Status check_packed_dense(const Call& call) {
  const DenseCall v(call);
  Check check(call);
  check_rows(check, v);
  if (!check.status()) check_packed(check, packed_of(call, 7), "weight", 1, v.m, v.c);
  return check.status();
}

void run_packed_dense(const Call& call, ThreadPool& pool) {
  const Packed packed = packed_of(call, 7);
  compute(DenseCall(call), &packed, pool);
}

}  // namespace

const Operation kDenseNc16{"dense_nc16", 6, 7, 3, check, run};
const Operation kDensePacked{"dense_packed", 6, 12, 3, check_packed_dense, run_packed_dense, "fuffff"};

}  // namespace pocketfarm::cpu
