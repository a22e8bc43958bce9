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
    src = call.buffers[0].data, weight = call.buffers[1].data;
    scratch = call.buffers[4].data, scratch_floats = call.buffers[4].elements;
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

// Tiles [first, first + count) of the batch, in the scratch memory: inputs (36, c blocks, count, 16), then products
// (36, k blocks, count, 16).
class Band {
 public:
  Band(const Winograd& v, int64_t first, int64_t count, float* scratch)
      : v_(v), kernels_(nc16_kernels()), first_(first), count_(count), inputs_(scratch),
        products_(scratch + kPositions * blocks_of(v.c) * count * kBlock) {}

  void run(ThreadPool& pool) {
    pool.shared(blocks_of(v_.c) * count_, kTransformWork, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) transform_input(i / count_, i % count_);
    });
    pool.each(kPositions, [&](int64_t position, int) { multiply(position); }, kPositions * count_ * v_.c * v_.k);
    pool.shared(blocks_of(v_.k) * count_, kTransformWork, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) transform_output(i / count_, i % count_);
    });
  }

 private:
  struct Place {
    int64_t image, y, x;
  };
  Place place(int64_t tile) const {
    const int64_t number = first_ + tile, in_image = number % v_.image_tiles();
    return {number / v_.image_tiles(), in_image / v_.across() * kTile, in_image % v_.across() * kTile};
  }

  void transform_input(int64_t block, int64_t tile) const {
    const Place at = place(tile);
    kernels_.winograd_input(v_.src + (at.image * blocks_of(v_.c) + block) * v_.h * v_.w * kBlock, v_.h, v_.w,
                            at.y - v_.pad_t, at.x - v_.pad_l, inputs_ + (block * count_ + tile) * kBlock,
                            blocks_of(v_.c) * count_ * kBlock);
  }

  void multiply(int64_t position) const {
    const int64_t blocks = blocks_of(v_.k), tiles = (count_ + kernels_.pixels - 1) / kernels_.pixels;
    Product product{};
    product.step = kBlock;
    product.entry_stride = count_ * kBlock;
    product.entries = product.run = v_.c / kBlock;
    product.tail_lanes = static_cast<int>(v_.c % kBlock);
    product.tail_entries = product.tail_lanes > 0 ? 1 : 0;
    product.weight_stride = v_.c * kBlock;
    product.out_stride = count_ * kBlock;
    for (int64_t block = 0; block < blocks; block += kernels_.blocks) {
      product.weight = v_.weight + (position * blocks + block) * product.weight_stride;
      product.blocks = static_cast<int>(std::min<int64_t>(kernels_.blocks, blocks - block));
      for (int64_t tile = 0; tile < tiles; ++tile) {
        const int64_t begin = count_ * tile / tiles, end = count_ * (tile + 1) / tiles;
        product.values = inputs_ + (position * blocks_of(v_.c) * count_ + begin) * kBlock;
        product.pixels = static_cast<int>(end - begin);
        product.ahead = tile == 0 ? product.blocks * product.weight_stride : 0;
        product.out = products_ + ((position * blocks + block) * count_ + begin) * kBlock;
        kernels_.product(product);
      }
    }
  }

  void transform_output(int64_t block, int64_t tile) const {
    const Place at = place(tile);
    float* out = v_.output.at(at.image, block);
    kernels_.winograd_output(products_ + (block * count_ + tile) * kBlock, blocks_of(v_.k) * count_ * kBlock, out,
                             v_.oh, v_.ow, at.y, at.x, v_.output.epilogue(at.image, block, 0));
    const int64_t width = std::min(kTile, v_.ow - at.x);
    for (int64_t y = at.y; y < std::min(at.y + kTile, v_.oh); ++y)
      v_.output.finish(out + (y * v_.ow + at.x) * kBlock, width * kBlock);
  }

  const Winograd& v_;
  const Nc16Kernels& kernels_;
  const int64_t first_, count_;
  float *const inputs_, *const products_;
};

// Each thread transforms and multiplies tiles of its own, where reading all weights costs less than to hand on so much.
bool by_threads(const Winograd& v, int64_t tiles, int64_t most, int threads) {
  return threads > 1 && most / threads >= nc16_kernels().pixels && tiles >= kBlock * threads &&
         v.c * v.k <= kHandedOn * (v.c + v.k) * tiles;
}

void run(const Call& call, ThreadPool& pool) {
  const Winograd v(call);
  const int64_t tiles = v.n * v.image_tiles(), most = v.scratch_floats / v.tile_floats();
  if (const int threads = pool.threads_for(kPositions * tiles * v.c * v.k); by_threads(v, tiles, most, threads)) {
    const int64_t own = most / threads, bands = threads * ((tiles + own * threads - 1) / (own * threads));
    ThreadPool here(1);
    pool.each(bands, [&](int64_t i, int thread) {
      const int64_t first = tiles * i / bands;
      Band(v, first, tiles * (i + 1) / bands - first, v.scratch + thread * own * v.tile_floats()).run(here);
    });
    return;
  }
  const int64_t bands = (tiles + most - 1) / most;
  for (int64_t i = 0; i < bands; ++i) {
    const int64_t first = tiles * i / bands;
    Band(v, first, tiles * (i + 1) / bands - first, v.scratch).run(pool);
  }
}

}  // namespace

const Operation kWinogradNc16{"winograd_nc16", 6, 14, 2, check, run};

}  // namespace pocketfarm::cpu
