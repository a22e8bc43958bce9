#include "image.h"

#include <algorithm>
#include <cstring>

namespace pocketfarm::cpu {
namespace {

constexpr int64_t kColumns = 256;  // of a row that is turned at a time

int64_t channels_stored(const Int8Conv& v) { return v.source == Int8Source::plain ? v.c : blocks_of(v.c) * kBlock; }

}  // namespace

Int8Image::Int8Image(const Int8Conv& conv, const Int8Kernels& kernels, ThreadPool& pool, int64_t image)
    : v_(conv), kernels_(kernels), src_(conv.src + image * channels_stored(conv) * conv.h * conv.w),
      codes_(reinterpret_cast<const uint8_t*>(conv.src) + image * channels_stored(conv) * conv.h * conv.w) {
  if (v_.by == Int8By::given) {
    steps_ = v_.steps;
  } else if (v_.by == Int8By::own_range) {
    steps_ = steps_of(range(pool, src_, 1));
  } else {
    steps_ = dynamic_steps(range(pool, v_.src, v_.n));
  }
}

// Lanes that fill the last block hold anything, and are not looked at.
Int8Range Int8Image::range(ThreadPool& pool, const float* from, int64_t images) const {
  const int64_t pixels = v_.h * v_.w, left = v_.source == Int8Source::plain ? 0 : v_.c % kBlock;
  const int64_t count = (v_.c - left) * pixels;
  Int8Range all;
  for (int64_t image = 0; image < images; ++image, from += channels_stored(v_) * pixels) {
    widen(kernels_, pool, from, count, &all);
    for (int64_t pixel = 0; left > 0 && pixel < pixels; ++pixel) kernels_.range(from + count + pixel * kBlock, left, &all);
  }
  return all;
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
