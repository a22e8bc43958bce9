#include "image.h"

#include <algorithm>
#include <cstring>

namespace pocketfarm::cpu {
namespace {

constexpr int64_t kColumns = 256;  // of a row that is turned at a time

int64_t channels_stored(const Int8Conv& v) { return v.source == Int8Source::plain ? v.c : blocks_of(v.c) * kBlock; }

// Lanes that fill the last block hold anything, and are not looked at.
Int8Range range_of(const Int8Conv& v, const Int8Kernels& kernels, ThreadPool& pool, const float* from, int64_t images) {
  const int64_t pixels = v.h * v.w, left = v.source == Int8Source::plain ? 0 : v.c % kBlock, count = (v.c - left) * pixels;
  Int8Range all;
  for (int64_t image = 0; image < images; ++image, from += channels_stored(v) * pixels) {
    widen(kernels, pool, from, count, &all);
    for (int64_t pixel = 0; left > 0 && pixel < pixels; ++pixel) kernels.range(from + count + pixel * kBlock, left, &all);
  }
  return all;
}

}  // namespace

Int8Image::Int8Image(const Int8Conv& conv, const Int8Kernels& kernels, ThreadPool& pool, int64_t image)
    : v_(conv), kernels_(kernels), src_(conv.src + image * channels_stored(conv) * conv.h * conv.w),
      codes_(reinterpret_cast<const uint8_t*>(conv.src) + image * channels_stored(conv) * conv.h * conv.w) {
  steps_ = v_.by == Int8By::own_range ? steps_of(range_of(v_, kernels_, pool, src_, 1)) : v_.steps;
}

void find_steps(Int8Conv* conv, const Int8Kernels& kernels, ThreadPool& pool) {
  if (conv->by == Int8By::whole_range) conv->steps = dynamic_steps(range_of(*conv, kernels, pool, conv->src, conv->n));
}

void Int8Image::write_row(int64_t block, int64_t row, uint8_t* to) const {
  const int64_t y = row - v_.pad_t, before = std::min(v_.pad_l, v_.columns), lanes = v_.lanes();
  const int64_t inside = y >= 0 && y < v_.h ? std::min(v_.w, v_.columns - before) : 0;
  const auto zero = static_cast<uint8_t>(steps_.zero);
  std::fill(to, to + before * lanes, zero);
  std::fill(to + (before + inside) * lanes, to + v_.columns * lanes, zero);
  to += before * lanes;
  if (inside == 0) return;
  const int64_t first = (block * v_.h + y) * v_.w * kBlock;
  switch (v_.source) {
    case Int8Source::codes: std::memcpy(to, codes_ + first, static_cast<size_t>(inside * kBlock)); return;
    case Int8Source::blocks: return kernels_.quantize(src_ + first, inside * kBlock, steps_, to);
    case Int8Source::plain: return turn_row(src_ + y * v_.w, inside, to);
  }
}

// From a row of each channel to the channels of each pixel.
void Int8Image::turn_row(const float* from, int64_t count, uint8_t* to) const {
  uint8_t line[kColumns];
  const int64_t lanes = v_.lanes();
  for (int64_t first = 0; first < count; first += kColumns)
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const int64_t here = std::min(kColumns, count - first);
      if (lane < v_.c) kernels_.quantize(from + lane * v_.h * v_.w + first, here, steps_, line);
      for (int64_t x = 0; x < here; ++x) to[(first + x) * lanes + lane] = lane < v_.c ? line[x] : 0;
    }
}

}  // namespace pocketfarm::cpu
