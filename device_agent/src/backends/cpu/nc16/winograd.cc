// Convolution 3x3 of stride 1 by F(4x4, 3x3): inputs transformed, 36 matrix products, sums transformed back.
#include <algorithm>

#include "nc16.h"
#include "kernels.h"
#include "output.h"
#include "backends/cpu/operations/operation.h"

namespace pocketfarm::cpu {
namespace {

constexpr int64_t kPositions = 36, kTile = 4;
constexpr int64_t kHandedOn = 4;  // times as long as a weight is read takes what another thread wrote
constexpr int64_t kTransformWork = 8 * kPositions * kBlock;  // of a block of a tile

struct Winograd {
  const float *src, *weight;
  float* scratch;
  int64_t scratch_floats;
  int64_t n, c, h, w, k, oh, ow, pad_t, pad_l;
  Output output;

  explicit Winograd(const Call& call) {
    src = call.buffers[0].as<float>(), weight = call.buffers[1].as<float>();
    scratch = call.buffers[4].as<float>(), scratch_floats = call.buffers[4].elements;
    const int32_t* i = call.ints.data();
    for (int64_t* field : {&n, &c, &h, &w, &k, &oh, &ow, &pad_t, &pad_l}) *field = *i++;
    output = Output(call, 2, 9, k, oh * ow);
  }
  int64_t across() const { return (ow + kTile - 1) / kTile; }
  int64_t image_tiles() const { return across() * ((oh + kTile - 1) / kTile); }
  // Floats of scratch memory for one tile.
  int64_t tile_floats() const { return kPositions * (blocks_of(c) + blocks_of(k)) * kBlock; }
};

Status check(const Call& call) {
  const Winograd v(call);
  Check check(call);
  check.sizes({v.n, v.c, v.h, v.w, v.k, v.oh, v.ow})
      .range("pad_t", v.pad_t, 0, Check::kMaxSize)
      .range("pad_l", v.pad_l, 0, Check::kMaxSize)
      .holds("src", 0, {v.n, blocks_of(v.c), kBlock, v.h, v.w})
      .holds("weight", 1, {kPositions, blocks_of(v.k), v.c, kBlock})
      .holds("scratch", 4, {kPositions, blocks_of(v.c) + blocks_of(v.k), kBlock});
  return v.output.check(check, call, 2, v.n, v.oh, v.ow);
}

// Some of what is asked for: tiles of the batch, and blocks of outputs.
struct Part {
  int64_t tile, tiles, block, blocks;
};

// A part, in scratch memory: inputs (36, c blocks, tiles, 16), then products (36, its blocks, tiles, 16).
class Band {
 public:
  Band(const Winograd& v, const Part& part, float* scratch)
      : v_(v), kernels_(nc16_kernels()), part_(part), count_(part.tiles), inputs_(scratch),
        products_(scratch + kPositions * blocks_of(v.c) * count_ * kBlock) {}

  // All of it by the calling thread.
  void run() {
    for (int64_t i = 0; i < blocks_of(v_.c) * count_; ++i) transform_input(i / count_, i % count_);
    for (int64_t position = 0; position < kPositions; ++position) multiply(position);
    for (int64_t i = 0; i < part_.blocks * count_; ++i) transform_output(i / count_, i % count_);
  }

  void run(ThreadPool& pool) {
    pool.shared(blocks_of(v_.c) * count_, kTransformWork, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) transform_input(i / count_, i % count_);
    });
    pool.each(kPositions, [&](int64_t position, int) { multiply(position); }, kPositions * count_ * v_.c * v_.k);
    pool.shared(part_.blocks * count_, kTransformWork, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) transform_output(i / count_, i % count_);
    });
  }

 private:
  struct Place {
    int64_t image, y, x;
  };
  Place place(int64_t tile) const {
    const int64_t number = part_.tile + tile, in_image = number % v_.image_tiles();
    return {number / v_.image_tiles(), in_image / v_.across() * kTile, in_image % v_.across() * kTile};
  }

  void transform_input(int64_t block, int64_t tile) const {
    const Place at = place(tile);
    kernels_.winograd_input(v_.src + (at.image * blocks_of(v_.c) + block) * v_.h * v_.w * kBlock, v_.h, v_.w,
                            at.y - v_.pad_t, at.x - v_.pad_l, inputs_ + (block * count_ + tile) * kBlock,
                            blocks_of(v_.c) * count_ * kBlock);
  }

  void multiply(int64_t position) const {
    Product product{};
    product.values = inputs_ + position * blocks_of(v_.c) * count_ * kBlock;
    product.pixels = static_cast<int>(count_);
    product.step = kBlock;
    product.entry_stride = count_ * kBlock;
    product.entries = product.run = v_.c / kBlock;
    product.tail_lanes = static_cast<int>(v_.c % kBlock);
    product.tail_entries = product.tail_lanes > 0 ? 1 : 0;
    product.weight_stride = v_.c * kBlock;
    product.out_stride = count_ * kBlock;
    for (int64_t block = 0; block < part_.blocks; block += kernels_.blocks) {
      product.weight = v_.weight + (position * blocks_of(v_.k) + part_.block + block) * product.weight_stride;
      product.blocks = static_cast<int>(std::min<int64_t>(kernels_.blocks, part_.blocks - block));
      product.ahead = product.blocks * product.weight_stride;
      product.out = products_ + (position * part_.blocks + block) * count_ * kBlock;
      kernels_.product(product);
    }
  }

  void transform_output(int64_t block, int64_t tile) const {
    const Place at = place(tile);
    float* out = v_.output.at(at.image, part_.block + block);
    kernels_.winograd_output(products_ + (block * count_ + tile) * kBlock, part_.blocks * count_ * kBlock, out,
                             v_.oh, v_.ow, at.y, at.x, v_.output.epilogue(at.image, part_.block + block, 0));
    const int64_t width = std::min(kTile, v_.ow - at.x);
    for (int64_t y = at.y; y < std::min(at.y + kTile, v_.oh); ++y)
      v_.output.finish(out + (y * v_.ow + at.x) * kBlock, width * kBlock);
  }

  const Winograd& v_;
  const Nc16Kernels& kernels_;
  const Part part_;
  const int64_t count_;
  float *const inputs_, *const products_;
};

// How a part for each thread is cut, which it takes from input to output.
struct Cut {
  int64_t tiles, blocks;  // parts along each; 0: none
  int64_t most;           // tiles that a thread works on together
};

// By tiles, where reading all weights in each thread costs less than to hand on so much; else by outputs, where each
// thread transforms all inputs. Without parts where neither fits into the scratch memory.
Cut cut(const Winograd& v, int64_t tiles, int threads) {
  const int64_t inputs = blocks_of(v.c), outputs = blocks_of(v.k), pixels = nc16_kernels().pixels;
  const auto most = [&](int64_t blocks) { return v.scratch_floats / threads / (kPositions * kBlock * (inputs + blocks)); };
  if (most(outputs) >= pixels && tiles >= kBlock * threads && v.c * v.k <= kHandedOn * (v.c + v.k) * tiles)
    return {threads, 1, most(outputs)};
  const int64_t own = (outputs + threads - 1) / threads;
  if (outputs >= nc16_kernels().blocks * threads && most(own) >= std::min(tiles, pixels)) return {1, threads, most(own)};
  return {0, 0, 0};
}

void run_part(const Winograd& v, const Part& part, int64_t most, float* scratch) {
  const int64_t bands = (part.tiles + most - 1) / most;
  for (int64_t i = 0; i < bands; ++i) {
    const int64_t first = part.tiles * i / bands, last = part.tiles * (i + 1) / bands;
    Band(v, {part.tile + first, last - first, part.block, part.blocks}, scratch).run();
  }
}

void run(const Call& call, ThreadPool& pool) {
  const Winograd v(call);
  const int64_t tiles = v.n * v.image_tiles(), blocks = blocks_of(v.k), most = v.scratch_floats / v.tile_floats();
  const int threads = pool.threads_for(kPositions * tiles * v.c * v.k);
  const Cut parts = threads > 1 ? cut(v, tiles, threads) : Cut{};
  if (parts.tiles > 0) {
    pool.each(threads, [&](int64_t i, int) {
      const int64_t column = i % parts.tiles, row = i / parts.tiles;
      const int64_t tile = tiles * column / parts.tiles, block = blocks * row / parts.blocks;
      run_part(v, {tile, tiles * (column + 1) / parts.tiles - tile, block, blocks * (row + 1) / parts.blocks - block},
               parts.most, v.scratch + v.scratch_floats / threads * i);
    });
    return;
  }
  const int64_t bands = (tiles + most - 1) / most;
  for (int64_t i = 0; i < bands; ++i) {
    const int64_t first = tiles * i / bands;
    Band(v, {first, tiles * (i + 1) / bands - first, 0, blocks}, v.scratch).run(pool);
  }
}

}  // namespace

const Operation kWinogradNc16{"winograd_4x4_nc16", 6, 14, 2, check, run};

}  // namespace pocketfarm::cpu
