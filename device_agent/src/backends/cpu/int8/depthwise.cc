// Depthwise convolution in 8 bits, of k / c filters a channel: a band of rows of a block is written in whole numbers, with
// its edges, to a thread's own memory, which stays in the first cache.
#include <algorithm>
#include <vector>

#include "image.h"

namespace pocketfarm::cpu {
namespace {

constexpr int64_t kTasksPerThread = 4;    // for balance
constexpr int64_t kBandBytes = 24 << 10;  // of a band, where that is more than a window's rows
constexpr int64_t kMostPixels = 1 << 24;  // of these

Status check(const Call& call) {
  const Int8Conv v(call);
  Check check(call);
  check.sizes({v.n, v.c, v.h, v.w, v.k, v.oh, v.ow, v.kh, v.kw, v.sh, v.sw, v.dh, v.dw, v.dst_channels})
      .range("pad_t", v.pad_t, 0, Check::kMaxSize)
      .range("pad_l", v.pad_l, 0, Check::kMaxSize);
  if (check.status()) return check.status();
  check.that(v.groups == v.c && v.k % v.c == 0, "each channel must have filters of its own")
      .that(v.source != Int8Source::plain, "the source must be in blocks")
      .range("columns", v.columns, 1, kMostPixels)
      .range("rows of a window", (v.kh - 1) * v.dh + 1, 1, kMostPixels)
      .holds("weight", 1, {blocks_of(v.k), v.kh, v.kw, kBlock});
  if (check.status()) return check.status();
  check.range("pixels of a window's rows", ((v.kh - 1) * v.dh + 1) * v.columns, 1, kMostPixels);
  if (check.status()) return check.status();
  return v.check(call, v.kh * v.kw);
}

class Bands {
 public:
  Bands(const Int8Conv& conv, const Int8Kernels& kernels, int threads) : v_(conv), kernels_(kernels) {
    row_ = v_.columns * kBlock;
    const int64_t room = kBandBytes / row_ - (v_.kh - 1) * v_.dh - 1;
    height_ = std::clamp<int64_t>(room / v_.sh + 1, 1, v_.oh);
    const int64_t wanted = threads > 1 ? kTasksPerThread * threads : 1;
    while (height_ > 1 && blocks_of(v_.k) * bands() < wanted) height_ = (height_ + 1) / 2;
    if (v_.has_offsets) ones_.assign(static_cast<size_t>(v_.kh * v_.kw * kBlock), 1);
    least_ = (v_.ow + kInt8MostPixels - 1) / kInt8MostPixels;
  }

  void run(const Int8Image& image, int64_t number, ThreadPool& pool) const {
    pool.each(blocks_of(v_.k) * bands(), [&](int64_t i, int thread) {
      const int64_t block = i / bands(), first = i % bands() * height_, end = std::min(first + height_, v_.oh);
      const int64_t rows = (end - first - 1) * v_.sh + (v_.kh - 1) * v_.dh + 1;
      const auto bytes = static_cast<size_t>((rows + 1) * row_ + kInt8Ahead);  // a row more for what is spread
      auto* values = reinterpret_cast<uint8_t*>(pool.scratch(thread, (bytes + 3) / 4));
      for (int64_t row = 0; row < rows; ++row) write_row(image, block, first * v_.sh + row, values + row * row_, values + rows * row_);
      multiply(number, block, first, end, values, image.steps());
    });
  }

 private:
  int64_t bands() const { return (v_.oh + height_ - 1) / height_; }

  // Lane by lane the channel that it is computed of.
  void write_row(const Int8Image& image, int64_t block, int64_t row, uint8_t* to, uint8_t* spare) const {
    const int64_t filters = v_.k / v_.c;
    if (filters == 1) return image.write_row(block, row, to);
    const int64_t lanes = std::min(kBlock, v_.k - block * kBlock);
    for (int64_t lane = 0, have = -1; lane < lanes; ++lane) {
      const int64_t channel = (block * kBlock + lane) / filters;
      if (channel / kBlock != have) image.write_row(have = channel / kBlock, row, spare);
      for (int64_t x = 0; x < v_.columns; ++x) to[x * kBlock + lane] = spare[x * kBlock + channel % kBlock];
    }
    for (int64_t lane = lanes; lane < kBlock; ++lane)
      for (int64_t x = 0; x < v_.columns; ++x) to[x * kBlock + lane] = 0;
  }

  void multiply(int64_t number, int64_t block, int64_t first, int64_t end, const uint8_t* values, const Int8Steps& steps) const {
    int32_t sums[kInt8MostPixels * kBlock], windows[kInt8MostPixels * kBlock];
    Int8End end_of_block(v_, steps, number, block);
    const int8_t* weight = v_.weight + block * v_.kh * v_.kw * kBlock;
    for (int64_t oy = first; oy < end; ++oy)
      for (int64_t part = 0; part < least_; ++part) {
        const int64_t x = v_.ow * part / least_, pixels = v_.ow * (part + 1) / least_ - x;
        Int8Window window{values + (oy - first) * v_.sh * row_ + x * v_.sw * kBlock, v_.dh * row_, v_.dw * kBlock,
                          v_.sw * kBlock, v_.kh, v_.kw, weight, static_cast<int>(pixels), sums};
        kernels_.window(window);
        if (v_.has_offsets) {
          window.weight = ones_.data(), window.sums = windows;
          kernels_.window(window);
          for (int64_t i = 0; i < pixels * kBlock; ++i)
            sums[i] += v_.offsets(block)[i % kBlock] * (windows[i] - steps.zero * static_cast<int32_t>(v_.kh * v_.kw));
        }
        end_of_block.finish(kernels_, oy * v_.ow + x, pixels, sums);
      }
  }

  const Int8Conv& v_;
  const Int8Kernels& kernels_;
  std::vector<int8_t> ones_;      // a window's weights, where others have offsets
  int64_t row_, height_, least_;  // bytes of a row, outputs of a band, parts of a row of outputs
};

void run(const Call& call, ThreadPool& pool) {
  Int8Conv v(call);
  const Int8Kernels& kernels = int8_kernels();
  find_steps(&v, kernels, pool);
  const Bands bands(v, kernels, pool.threads());
  for (int64_t number = 0; number < v.n; ++number) bands.run(Int8Image(v, kernels, pool, number), number, pool);
}

}  // namespace

const Operation kDepthwiseInt8{"depthwise_int8", 9, 33, 7, check, run, ".bfi....."};

}  // namespace pocketfarm::cpu
