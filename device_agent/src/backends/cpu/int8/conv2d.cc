// Convolution in 8 bits: an image is quantized with its edges around it, so that every window lies whole in memory, and
// multiplied where it lies. Results are in blocks of sixteen channels (nc16).
#include <algorithm>
#include <cstring>
#include <vector>

#include "quantized.h"
#include "backends/cpu/nc16/nc16.h"
#include "backends/cpu/nc16/output.h"
#include "backends/cpu/operations/operation.h"

namespace pocketfarm::cpu {
namespace {

constexpr int64_t kTasksPerThread = 4;   // for balance
constexpr int64_t kRangeFloats = 16384;  // of a task that looks for the range
constexpr int64_t kTaskBytes = 256 << 10;  // of values that a task reads again for each of its outputs
constexpr int64_t kColumns = 256;        // of a row that is turned at a time

struct Conv {
  const float *src, *scales;
  const int8_t* weight;
  const int32_t* sums;
  uint8_t* values;
  int64_t n, c, h, w, k, oh, ow, kh, kw, sh, sw, pad_t, pad_l, dh, dw, groups;
  bool src_plain, steps_given;
  Int8Steps steps;  // where they are given
  Output output;
  int64_t rows, columns, lanes;  // of the quantized image: what the windows read, its edges too

  explicit Conv(const Call& call) {
    src = call.buffers[0].data, scales = call.buffers[2].data;
    weight = reinterpret_cast<const int8_t*>(call.buffers[1].data);
    sums = reinterpret_cast<const int32_t*>(call.buffers[3].data);
    values = reinterpret_cast<uint8_t*>(call.buffers[6].data);
    const int32_t* i = call.ints.data();
    for (int64_t* field : {&n, &c, &h, &w, &k, &oh, &ow, &kh, &kw, &sh, &sw, &pad_t, &pad_l, &dh, &dw, &groups}) *field = *i++;
    src_plain = *i != 0;
    output = Output(call, 4, 17, k, oh * ow);
    steps_given = call.ints[22] != 0, steps = given_steps(call.floats[2], call.ints[23]);
    rows = (oh - 1) * sh + (kh - 1) * dh + 1, columns = (ow - 1) * sw + (kw - 1) * dw + 1;
    lanes = src_plain ? (c + 3) / 4 * 4 : kBlock;
  }
  int64_t source_blocks() const { return src_plain ? 1 : blocks_of(c); }
  int64_t group_source_blocks() const { return src_plain ? 1 : blocks_of(c / groups); }
  int64_t group_blocks() const { return blocks_of(k / groups); }
  int64_t depth() const { return group_source_blocks() * kh * kw * lanes; }
  bool pointwise() const {
    return kh == 1 && kw == 1 && sh == 1 && sw == 1 && pad_t == 0 && pad_l == 0 && oh == h && ow == w;
  }
};

Status check(const Call& call) {
  const Conv v(call);
  Check check(call);
  check.sizes({v.n, v.c, v.h, v.w, v.k, v.oh, v.ow, v.kh, v.kw, v.sh, v.sw, v.dh, v.dw, v.groups})
      .range("pad_t", v.pad_t, 0, Check::kMaxSize)
      .range("pad_l", v.pad_l, 0, Check::kMaxSize);
  if (check.status()) return check.status();
  check.that(v.c % v.groups == 0 && v.k % v.groups == 0, "groups must divide c and k");
  if (check.status()) return check.status();
  check.that(v.groups == 1 || (v.c / v.groups % kBlock == 0 && v.k / v.groups % kBlock == 0 && !v.src_plain),
             "a group must have whole blocks of 16 channels")
      .that(!v.src_plain || v.c <= kBlock, "a row-major source has at most 16 channels")
      .holds("weight", 1, {blocks_of(v.k), v.group_source_blocks(), v.kh, v.kw, v.lanes / 4, kBlock});
  if (check.status()) return check.status();
  check.range("depth", v.depth(), 1, kInt8MostDepth)
      .holds("scale", 2, {blocks_of(v.k), kBlock})
      .holds("sums", 3, {blocks_of(v.k), kBlock})
      .holds("values", 6, {v.source_blocks(), v.rows, v.columns, v.lanes / 4});
  if (v.src_plain) check.holds("src", 0, {v.n, v.c, v.h, v.w});
  if (!v.src_plain) check.holds("src", 0, {v.n, blocks_of(v.c), kBlock, v.h, v.w});
  check.that(!v.steps_given || v.steps.scale > 0, "a given scale must be positive").range("zero", v.steps.zero, 0, 255);
  if (check.status()) return check.status();
  return v.output.check(check, call, 4, v.n, v.oh, v.ow);
}

class Quantized {
 public:
  Quantized(const Conv& conv, const Int8Kernels& kernels, ThreadPool& pool, int64_t image)
      : v_(conv), kernels_(kernels), src_(conv.src + image * (conv.src_plain ? conv.c : blocks_of(conv.c) * kBlock) * conv.h * conv.w) {
    steps_ = v_.steps_given ? v_.steps : steps_of(range(pool));
    pool.ranges(v_.source_blocks() * v_.rows, 4, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) write_row(i / v_.rows, i % v_.rows);
    });
  }
  const Int8Steps& steps() const { return steps_; }

 private:
  // Lanes that fill the last block hold anything, and are not looked at.
  Int8Range range(ThreadPool& pool) const {
    const int64_t pixels = v_.h * v_.w, left = v_.src_plain ? 0 : v_.c % kBlock;
    const int64_t count = (v_.c - left) * pixels, parts = std::clamp<int64_t>(count / kRangeFloats, 1, kTasksPerThread * pool.threads());
    std::vector<Int8Range> found(static_cast<size_t>(parts + (left > 0 ? 1 : 0)));
    pool.each(static_cast<int64_t>(found.size()), [&](int64_t i, int) {
      Int8Range own;
      if (i < parts) kernels_.range(src_ + count * i / parts, count * (i + 1) / parts - count * i / parts, &own);
      if (i == parts)
        for (int64_t pixel = 0; pixel < pixels; ++pixel) kernels_.range(src_ + count + pixel * kBlock, left, &own);
      found[static_cast<size_t>(i)] = own;
    });
    Int8Range all;
    for (const Int8Range& own : found) {
      all.least = std::min(all.least, own.least), all.most = std::max(all.most, own.most);
      all.finite = all.finite && own.finite;
    }
    return all;
  }

  void write_row(int64_t block, int64_t row) const {
    uint8_t* to = v_.values + (block * v_.rows + row) * v_.columns * v_.lanes;
    const int64_t y = row - v_.pad_t, before = std::min(v_.pad_l, v_.columns);
    const int64_t inside = y >= 0 && y < v_.h ? std::min(v_.w, v_.columns - before) : 0;
    const auto zero = static_cast<uint8_t>(steps_.zero);
    std::fill(to, to + before * v_.lanes, zero);
    std::fill(to + (before + inside) * v_.lanes, to + v_.columns * v_.lanes, zero);
    to += before * v_.lanes;
    if (inside == 0) return;
    if (!v_.src_plain) return kernels_.quantize(src_ + (block * v_.h + y) * v_.w * kBlock, inside * kBlock, steps_, to);
    turn_row(src_ + y * v_.w, inside, to);
  }

  // From a row of each channel to the channels of each pixel.
  void turn_row(const float* from, int64_t count, uint8_t* to) const {
    uint8_t line[kColumns];
    for (int64_t first = 0; first < count; first += kColumns)
      for (int64_t lane = 0; lane < v_.lanes; ++lane) {
        const int64_t here = std::min(kColumns, count - first);
        if (lane < v_.c) kernels_.quantize(from + lane * v_.h * v_.w + first, here, steps_, line);
        for (int64_t x = 0; x < here; ++x) to[(first + x) * v_.lanes + lane] = lane < v_.c ? line[x] : 0;
      }
  }

  const Conv& v_;
  const Int8Kernels& kernels_;
  const float* src_;
  Int8Steps steps_{};
};

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
          offsets_.push_back(((block * v_.rows + ky * v_.dh) * v_.columns + kx * v_.dw) * v_.lanes);
  }

  void run(int64_t image, const Int8Steps& steps, ThreadPool& pool) const {
    const int64_t pairs = (v_.group_blocks() + kernels_.blocks - 1) / kernels_.blocks;
    const int64_t wanted = pool.threads() > 1 ? kTasksPerThread * pool.threads() : 1;
    const int64_t bytes = v_.group_source_blocks() * v_.rows * v_.columns * v_.lanes;
    const int64_t across = std::min(tiles_, std::max(wanted, bytes / kTaskBytes));
    const int64_t down = std::clamp<int64_t>(wanted / across, 1, pairs);
    pool.each(v_.groups * across * down, [&](int64_t i, int) {
      const int64_t column = i % across, row = i / across % down, group = i / across / down;
      for (int64_t pair = pairs * row / down; pair < pairs * (row + 1) / down; ++pair)
        multiply(image, group, pair * kernels_.blocks, tiles_ * column / across, tiles_ * (column + 1) / across, steps);
    });
  }

 private:
  void multiply(int64_t image, int64_t group, int64_t first, int64_t tile, int64_t end, const Int8Steps& steps) const {
    const int64_t blocks = std::min<int64_t>(kernels_.blocks, v_.group_blocks() - first), block = group * v_.group_blocks() + first;
    int32_t sums[kInt8MostPixels * kInt8MostBlocks * kBlock], start[kInt8MostBlocks][kBlock];
    float factor[kInt8MostBlocks][kBlock];
    for (int64_t b = 0; b < blocks; ++b)
      correct(steps, v_.sums + (block + b) * kBlock, v_.scales + (block + b) * kBlock, start[b], factor[b]);
    const uint8_t* values = v_.values + group * v_.group_source_blocks() * v_.rows * v_.columns * v_.lanes;
    for (; tile < end; ++tile) {
      const int64_t x = tile % across_ * width_, pixel = tile / across_ * line_ + x, pixels = std::min(width_, line_ - x);
      const int64_t place = v_.pointwise() ? pixel : pixel / v_.ow * v_.sh * v_.columns + pixel % v_.ow * v_.sw;
      kernels_.product({values + place * v_.lanes, v_.sw * v_.lanes, offsets_.data(), static_cast<int64_t>(offsets_.size()),
                        v_.lanes / 4, v_.weight + block * kBlock * v_.depth(), kBlock * v_.depth(), static_cast<int>(pixels),
                        static_cast<int>(blocks), sums});
      for (int64_t b = 0; b < blocks; ++b) {
        float* out = v_.output.at(image, block + b) + pixel * kBlock;
        const Epilogue e = v_.output.epilogue(image, block + b, pixel);
        kernels_.scale(sums + b * pixels * kBlock, pixels, start[b], factor[b], e.bias, e.residual, out);
        activate(out, pixels * kBlock, e.activation, e.lo, e.hi);
      }
    }
  }

  const Conv& v_;
  const Int8Kernels& kernels_;
  int64_t line_, width_, across_, tiles_;
  std::vector<int64_t> offsets_;
};

void run(const Call& call, ThreadPool& pool) {
  const Conv v(call);
  const Int8Kernels& kernels = int8_kernels();
  const Product2d product(v, kernels);
  for (int64_t image = 0; image < v.n; ++image) {
    const Quantized quantized(v, kernels, pool, image);
    product.run(image, quantized.steps(), pool);
  }
}

}  // namespace

const Operation kConv2dInt8{"conv2d_int8", 8, 24, 3, check, run};

}  // namespace pocketfarm::cpu
