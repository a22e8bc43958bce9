// Convolution in 8 bits: an image is written in whole numbers with its edges around it, so that every window lies whole in
// memory, and multiplied where it lies. Results are in blocks of sixteen channels (nc16).
#include <algorithm>
#include <vector>

#include "image.h"

namespace pocketfarm::cpu {
namespace {

constexpr int64_t kTasksPerThread = 4;     // for balance
constexpr int64_t kTaskBytes = 256 << 10;  // of values that a task reads again for each of its outputs

struct Conv : Int8Conv {
  // Whether the windows read whole numbers where the layer before wrote them.
  bool in_place;

  explicit Conv(const Call& call) : Int8Conv(call) {
    in_place = source == Int8Source::codes && pad_t == 0 && pad_l == 0 && rows <= h && columns <= w;
    if (in_place) rows = h, columns = w;
  }
  int64_t group_source_blocks() const { return source == Int8Source::plain ? 1 : blocks_of(c / groups); }
  int64_t group_blocks() const { return blocks_of(k / groups); }
  int64_t depth() const { return group_source_blocks() * kh * kw * lanes(); }
  bool pointwise() const {
    return kh == 1 && kw == 1 && sh == 1 && sw == 1 && pad_t == 0 && pad_l == 0 && oh == h && ow == w;
  }
};

Status check(const Call& call) {
  const Conv v(call);
  Check check(call);
  check.sizes({v.n, v.c, v.h, v.w, v.k, v.oh, v.ow, v.kh, v.kw, v.sh, v.sw, v.dh, v.dw, v.groups, v.dst_channels})
      .range("pad_t", v.pad_t, 0, Check::kMaxSize)
      .range("pad_l", v.pad_l, 0, Check::kMaxSize);
  if (check.status()) return check.status();
  check.that(v.c % v.groups == 0 && v.k % v.groups == 0, "groups must divide c and k");
  if (check.status()) return check.status();
  const bool plain = v.source == Int8Source::plain;
  check.that(v.groups == 1 || (v.c / v.groups % kBlock == 0 && v.k / v.groups % kBlock == 0 && !plain),
             "a group must have whole blocks of 16 channels")
      .that(!plain || v.c <= kBlock, "a row-major source has at most 16 channels")
      .holds("weight", 1, {blocks_of(v.k), v.group_source_blocks(), v.kh, v.kw, v.lanes(), kBlock});
  if (!v.in_place) check.holds("values", 7, {v.source_blocks(), v.rows, v.columns, v.lanes()}, Type::u8);
  if (check.status()) return check.status();
  return v.check(call, v.depth());
}

class Product2d {
 public:
  Product2d(const Conv& conv, const Int8Kernels& kernels) : v_(conv), kernels_(kernels) {
    line_ = v_.pointwise() ? v_.oh * v_.ow : v_.ow;  // pixels whose values lie at even distances
    const int64_t least = (line_ + kernels_.pixels - 1) / kernels_.pixels;
    width_ = (line_ + least - 1) / least;
    across_ = (line_ + width_ - 1) / width_;
    tiles_ = v_.oh * v_.ow / line_ * across_;
    for (int64_t block = 0; block < v_.group_source_blocks(); ++block)
      for (int64_t ky = 0; ky < v_.kh; ++ky)
        for (int64_t kx = 0; kx < v_.kw; ++kx)
          offsets_.push_back(((block * v_.rows + ky * v_.dh) * v_.columns + kx * v_.dw) * v_.lanes());
  }

  void run(int64_t image, const uint8_t* values, const Int8Steps& steps, ThreadPool& pool) {
    if (v_.has_offsets) add_windows(values, steps, pool);
    const int64_t pairs = (v_.group_blocks() + kernels_.blocks - 1) / kernels_.blocks;
    const int64_t wanted = pool.threads() > 1 ? kTasksPerThread * pool.threads() : 1;
    const int64_t bytes = v_.group_source_blocks() * v_.rows * v_.columns * v_.lanes();
    const int64_t across = std::min(tiles_, std::max(wanted, bytes / kTaskBytes));
    const int64_t down = std::clamp<int64_t>(wanted / across, 1, pairs);
    pool.each(v_.groups * across * down, [&](int64_t i, int) {
      const int64_t column = i % across, row = i / across % down, group = i / across / down;
      for (int64_t pair = pairs * row / down; pair < pairs * (row + 1) / down; ++pair)
        multiply(image, values, group, pair * kernels_.blocks, tiles_ * column / across, tiles_ * (column + 1) / across, steps);
    });
  }

 private:
  // The sum of each window of each group, less as many zeros: a product with weights of 1.
  void add_windows(const uint8_t* values, const Int8Steps& steps, ThreadPool& pool) {
    const int64_t channels = v_.c / v_.groups, lanes = v_.lanes(), taps = v_.kh * v_.kw;
    std::vector<int8_t> ones(static_cast<size_t>(v_.depth() * kBlock));
    for (int64_t i = 0; i < v_.depth() * kBlock; ++i) {
      const int64_t d = i / (4 * kBlock) * 4 + i % 4;
      ones[static_cast<size_t>(i)] = d / (lanes * taps) * lanes + d % lanes < channels ? 1 : 0;
    }
    const auto zeros = static_cast<int32_t>(taps * channels) * steps.zero;
    windows_.resize(static_cast<size_t>(v_.groups * v_.oh * v_.ow));
    pool.each(v_.groups * tiles_, [&](int64_t i, int) {
      int32_t sums[kInt8MostPixels * kBlock];
      const Place at(*this, i % tiles_);
      product(values, i / tiles_, at, ones.data(), 1, sums);
      for (int64_t p = 0; p < at.pixels; ++p) windows_[static_cast<size_t>(i / tiles_ * v_.oh * v_.ow + at.pixel + p)] = sums[p * kBlock] - zeros;
    });
  }

  // A tile: its first output, how many, and where what they read begins.
  struct Place {
    int64_t pixel, pixels, source;
    Place(const Product2d& of, int64_t tile) {
      const Conv& v = of.v_;
      const int64_t x = tile % of.across_ * of.width_;
      pixel = tile / of.across_ * of.line_ + x, pixels = std::min(of.width_, of.line_ - x);
      source = v.pointwise() ? pixel : pixel / v.ow * v.sh * v.columns + pixel % v.ow * v.sw;
    }
  };

  void product(const uint8_t* values, int64_t group, const Place& at, const int8_t* weight, int64_t blocks, int32_t* sums) const {
    values += group * v_.group_source_blocks() * v_.rows * v_.columns * v_.lanes();
    kernels_.product({values + at.source * v_.lanes(), v_.sw * v_.lanes(), offsets_.data(), static_cast<int64_t>(offsets_.size()),
                      v_.lanes() / 4, weight, kBlock * v_.depth(), static_cast<int>(at.pixels), static_cast<int>(blocks), sums});
  }

  void multiply(int64_t image, const uint8_t* values, int64_t group, int64_t first, int64_t tile, int64_t end,
                const Int8Steps& steps) const {
    const int64_t blocks = std::min<int64_t>(kernels_.blocks, v_.group_blocks() - first), block = group * v_.group_blocks() + first;
    int32_t sums[kInt8MostPixels * kInt8MostBlocks * kBlock];
    static_assert(kInt8MostBlocks == 2);
    Int8End ends[] = {Int8End(v_, steps, image, block), Int8End(v_, steps, image, block + blocks - 1)};
    const int32_t* windows = v_.has_offsets ? windows_.data() + group * v_.oh * v_.ow : nullptr;
    for (; tile < end; ++tile) {
      const Place at(*this, tile);
      product(values, group, at, v_.weight + block * kBlock * v_.depth(), blocks, sums);
      for (int64_t b = 0; b < blocks; ++b)
        ends[b].finish(kernels_, at.pixel, at.pixels, sums + b * at.pixels * kBlock, windows == nullptr ? windows : windows + at.pixel);
    }
  }

  const Conv& v_;
  const Int8Kernels& kernels_;
  int64_t line_, width_, across_, tiles_;
  std::vector<int64_t> offsets_;
  std::vector<int32_t> windows_;
};

void run(const Call& call, ThreadPool& pool) {
  Conv v(call);
  const Int8Kernels& kernels = int8_kernels();
  find_steps(&v, kernels, pool);
  Product2d product(v, kernels);
  for (int64_t number = 0; number < v.n; ++number) {
    const Int8Image image(v, kernels, pool, number);
    if (!v.in_place) {
      pool.ranges(v.source_blocks() * v.rows, 4, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          image.write_row(i / v.rows, i % v.rows, v.values + i * v.columns * v.lanes());
      });
    }
    product.run(number, v.in_place ? image.codes() : v.values, image.steps(), pool);
  }
}

}  // namespace

const Operation kConv2dInt8{"conv2d_int8", 10, 33, 7, check, run, ".bfi......"};

}  // namespace pocketfarm::cpu
