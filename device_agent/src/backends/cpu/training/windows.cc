// Sliding windows over images whose pixels are rows: unfold and fold, pooling and its gradients.
#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/cpu/operations/operation.h"

namespace pocketfarm::cpu {
namespace {

typedef float Four __attribute__((vector_size(16)));

Four load(const float* from) {
  Four value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

void store(float* to, Four value) { std::memcpy(to, &value, sizeof value); }

struct Window {
  int64_t h, w, oh, ow, kh, kw, sh, sw, pad_t, pad_l;

  Window(const Call& call, size_t at)
      : h(call.ints[at]), w(call.ints[at + 1]), oh(call.ints[at + 2]), ow(call.ints[at + 3]), kh(call.ints[at + 4]),
        kw(call.ints[at + 5]), sh(call.ints[at + 6]), sw(call.ints[at + 7]), pad_t(call.ints[at + 8]), pad_l(call.ints[at + 9]) {}

  void check(Check& check) const {
    check.sizes({h, w, oh, ow, kh, kw, sh, sw}).range("pad_t", pad_t, 0, Check::kMaxSize).range("pad_l", pad_l, 0, Check::kMaxSize);
  }
};

// The product of sizes; a fault where it has no place in 63 bits.
int64_t product(Check& check, std::initializer_list<int64_t> sizes) {
  int64_t elements = 1;
  for (const int64_t size : sizes)
    if (__builtin_mul_overflow(elements, size, &elements)) {
      check.that(false, "the sizes multiply to more than 2^63");
      return 1;
    }
  return elements;
}

// Pixels times taps of one axis: 64 MiB of positions.
constexpr int64_t kMostPositions = int64_t{1} << 24;

void check_positions(Check& check, const Window& v) {
  check.that(v.h * v.kh <= kMostPositions && v.w * v.kw <= kMostPositions, "a window has too many taps for its image");
}

// Along one axis: for each pixel and tap the position of the window that has the pixel there; -1 for none. Divided once,
// not for each pixel of each image.
std::vector<int32_t> positions(int64_t pixels, int64_t taps, int64_t dilation, int64_t pad, int64_t stride, int64_t count) {
  std::vector<int32_t> found(static_cast<size_t>(pixels * taps), -1);
  for (int64_t at = 0; at < pixels; ++at)
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t reach = at + pad - tap * dilation;
      if (reach >= 0 && reach % stride == 0 && reach / stride < count)
        found[static_cast<size_t>(at * taps + tap)] = static_cast<int32_t>(reach / stride);
    }
  return found;
}

void add(const float* __restrict from, int64_t count, float* __restrict to) {
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}

struct FoldCall : Window {
  int64_t stride, channels, src_stride, dh, dw;

  explicit FoldCall(const Call& call)
      : Window(call, 4), stride(call.ints[1]), channels(call.ints[2]), src_stride(call.ints[3]), dh(call.ints[14]), dw(call.ints[15]) {}

  void check(Check& check) const {
    Window::check(check);
    check.sizes({stride, channels, src_stride, dh, dw}).that(channels <= src_stride, "more channels than a pixel has");
    check.that(!check.status() && kh * kw <= stride / channels, "a row has no place for all taps");
  }
};

Status check_unfold(const Call& call) {
  const FoldCall v(call);
  const int64_t rows = call.ints[0];
  Check check(call);
  check.sizes({rows});
  v.check(check);
  if (check.status()) return check.status();
  check.that(rows % (v.oh * v.ow) == 0, "the rows are not of whole images");
  return check.holds("src", 0, {rows / (v.oh * v.ow), v.h * v.w, v.src_stride}).holds("dst", 1, {rows, v.stride}).status();
}

// Taps of a row side by side are one copy where pixels have no more than their channels; else a pixel of up to four
// channels is copied with what is beside it, which the next tap writes over.
void run_unfold(const Call& call, ThreadPool& pool) {
  const FoldCall v(call);
  const bool joined = v.dw == 1 && v.channels == v.src_stride, few = v.channels < 4 && v.src_stride >= 4;
  pool.ranges(call.ints[0], 64, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* image = call.buffers[0].as<float>() + row / v.ow / v.oh * v.h * v.w * v.src_stride;
      const int64_t top = row / v.ow % v.oh * v.sh - v.pad_t, left = row % v.ow * v.sw - v.pad_l;
      float* const dst = call.buffers[1].as<float>() + row * v.stride;
      float* to = dst;
      for (int64_t ky = 0; ky < v.kh; ++ky) {
        const int64_t y = top + ky * v.dh;
        const float* line = image + (y * v.w + left) * v.src_stride;
        if (y < 0 || y >= v.h) {
          to = std::fill_n(to, v.kw * v.channels, 0.0f);
        } else if (joined && left >= 0 && left + v.kw <= v.w) {
          to = std::copy_n(line, v.kw * v.channels, to);
        } else {
          for (int64_t kx = 0; kx < v.kw; ++kx, to += v.channels) {
            const int64_t x = left + kx * v.dw;
            const float* from = line + kx * v.dw * v.src_stride;
            if (x < 0 || x >= v.w) std::fill_n(to, v.channels, 0.0f);
            else if (few && to + 4 <= dst + v.stride) std::memcpy(to, from, 4 * sizeof(float));
            else std::copy_n(from, v.channels, to);
          }
        }
      }
      std::fill(to, dst + v.stride, 0.0f);
    }
  });
}

Status check_fold(const Call& call) {
  const FoldCall v(call);
  const int64_t count = call.ints[0];
  Check check(call);
  check.sizes({count});
  v.check(check);
  if (check.status()) return check.status();
  const int64_t image = product(check, {v.h, v.w, v.src_stride});
  check_positions(check, v);
  check.that(count % image == 0, "the elements are not of whole images").holds("dst", 1, {count});
  return check.holds("src", 0, {count / image, v.oh * v.ow, v.stride}).status();
}

void run_fold(const Call& call, ThreadPool& pool) {
  const FoldCall v(call);
  const auto down = positions(v.h, v.kh, v.dh, v.pad_t, v.sh, v.oh), across = positions(v.w, v.kw, v.dw, v.pad_l, v.sw, v.ow);
  pool.ranges(call.ints[0] / v.src_stride, 64, [&](int64_t begin, int64_t end) {
    for (int64_t pixel = begin; pixel < end; ++pixel) {
      const int64_t x = pixel % v.w, y = pixel / v.w % v.h, image = pixel / v.w / v.h;
      float* dst = call.buffers[1].as<float>() + pixel * v.src_stride;
      std::fill_n(dst, v.src_stride, 0.0f);
      for (int64_t ky = 0; ky < v.kh; ++ky) {
        const int64_t oy = down[static_cast<size_t>(y * v.kh + ky)];
        for (int64_t kx = 0; kx < v.kw && oy >= 0; ++kx) {
          const int64_t ox = across[static_cast<size_t>(x * v.kw + kx)];
          if (ox < 0) continue;
          const int64_t row = (image * v.oh + oy) * v.ow + ox;
          add(call.buffers[0].as<float>() + row * v.stride + (ky * v.kw + kx) * v.channels, v.channels, dst);
        }
      }
    }
  });
}

struct PoolCall : Window {
  int64_t count, stride;

  explicit PoolCall(const Call& call) : Window(call, 2), count(call.ints[0]), stride(call.ints[1]) {}

  // Of a call whose elements are those of the images (`back`) or of the windows.
  Status check(const Call& call, bool back, std::initializer_list<size_t> of_windows, std::initializer_list<size_t> of_images) const {
    Check check(call);
    check.sizes({count, stride});
    Window::check(check);
    if (check.status()) return check.status();
    const int64_t image = product(check, {h, w, stride}), windows = product(check, {oh, ow, stride});
    const int64_t images = count / (back ? image : windows);
    if (back) check_positions(check, *this);
    check.that(count % (back ? image : windows) == 0, "the elements are not of whole images");
    check.that(pad_t < kh && pad_l < kw && (oh - 1) * sh - pad_t < h && (ow - 1) * sw - pad_l < w, "a window lies outside the image");
    for (size_t buffer : of_windows) check.holds("windows", buffer, {images, windows});
    for (size_t buffer : of_images) check.holds("images", buffer, {images, image});
    return check.status();
  }
};

Status check_max(const Call& call) { return PoolCall(call).check(call, false, {1, 2}, {0}); }
Status check_average(const Call& call) { return PoolCall(call).check(call, false, {1}, {0}); }
Status check_max_back(const Call& call) { return PoolCall(call).check(call, true, {0, 1}, {2}); }
Status check_average_back(const Call& call) { return PoolCall(call).check(call, true, {0}, {1}); }

// For each window: act(position of its result, first row, end row, first column, end column of what is inside).
template <typename Act>
void each_window(const PoolCall& v, ThreadPool& pool, Act act) {
  pool.ranges(v.count / v.stride, 64, [&](int64_t begin, int64_t end) {
    for (int64_t place = begin; place < end; ++place) {
      const int64_t x = place % v.ow * v.sw - v.pad_l, y = place / v.ow % v.oh * v.sh - v.pad_t;
      act(place, place / v.ow / v.oh, y, x);
    }
  });
}

// Four channels at once, which compilers do not see here by themselves; what is left, one by one.
void keep_larger(const float* src, int64_t count, float tap, float* dst, float* winners) {
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const Four now = load(src + i), best = load(dst + i);
    const auto wins = now > best;
    store(dst + i, wins ? now : best);
    store(winners + i, wins ? Four{tap, tap, tap, tap} : load(winners + i));
  }
  for (; i < count; ++i) {
    if (!(src[i] > dst[i])) continue;
    dst[i] = src[i];
    winners[i] = tap;
  }
}

void run_max(const Call& call, ThreadPool& pool) {
  const PoolCall v(call);
  each_window(v, pool, [&](int64_t place, int64_t image, int64_t y, int64_t x) {
    float* dst = call.buffers[1].as<float>() + place * v.stride;
    float* winners = call.buffers[2].as<float>() + place * v.stride;
    const int64_t ky0 = std::max<int64_t>(0, -y), kx0 = std::max<int64_t>(0, -x);
    for (int64_t ky = ky0; ky < std::min(v.kh, v.h - y); ++ky)
      for (int64_t kx = kx0; kx < std::min(v.kw, v.w - x); ++kx) {
        const float* src = call.buffers[0].as<float>() + ((image * v.h + y + ky) * v.w + x + kx) * v.stride;
        const float tap = static_cast<float>(ky * v.kw + kx);
        if (ky > ky0 || kx > kx0) {
          keep_larger(src, v.stride, tap, dst, winners);
        } else {
          std::copy_n(src, v.stride, dst);
          std::fill_n(winners, v.stride, tap);
        }
      }
  });
}

void run_average(const Call& call, ThreadPool& pool) {
  const PoolCall v(call);
  each_window(v, pool, [&](int64_t place, int64_t image, int64_t y, int64_t x) {
    float* dst = call.buffers[1].as<float>() + place * v.stride;
    std::fill_n(dst, v.stride, 0.0f);
    const int64_t y0 = std::max<int64_t>(0, y), y1 = std::min(v.h, y + v.kh), x0 = std::max<int64_t>(0, x), x1 = std::min(v.w, x + v.kw);
    for (int64_t row = y0; row < y1; ++row)
      for (int64_t column = x0; column < x1; ++column) {
        const float* src = call.buffers[0].as<float>() + ((image * v.h + row) * v.w + column) * v.stride;
        for (int64_t i = 0; i < v.stride; ++i) dst[i] += src[i];
      }
    const float inside = static_cast<float>((y1 - y0) * (x1 - x0));
    for (int64_t i = 0; i < v.stride; ++i) dst[i] /= inside;
  });
}

// For each pixel the windows that hold it: add(result of the pixel, position of the window, its tap, its row and column).
template <typename Add>
void each_holder(const PoolCall& v, ThreadPool& pool, float* to, Add add) {
  const auto down = positions(v.h, v.kh, 1, v.pad_t, v.sh, v.oh), across = positions(v.w, v.kw, 1, v.pad_l, v.sw, v.ow);
  pool.ranges(v.count / v.stride, 64, [&](int64_t begin, int64_t end) {
    for (int64_t pixel = begin; pixel < end; ++pixel) {
      const int64_t x = pixel % v.w, y = pixel / v.w % v.h, image = pixel / v.w / v.h;
      float* dst = to + pixel * v.stride;
      std::fill_n(dst, v.stride, 0.0f);
      for (int64_t ky = 0; ky < v.kh; ++ky) {
        const int64_t oy = down[static_cast<size_t>(y * v.kh + ky)];
        for (int64_t kx = 0; kx < v.kw && oy >= 0; ++kx) {
          const int64_t ox = across[static_cast<size_t>(x * v.kw + kx)];
          if (ox >= 0) add(dst, ((image * v.oh + oy) * v.ow + ox) * v.stride, ky * v.kw + kx, oy, ox);
        }
      }
    }
  });
}

void add_won(const float* src, const float* winners, int64_t count, float tap, float* dst) {
  int64_t i = 0;
  for (; i + 4 <= count; i += 4)
    store(dst + i, load(dst + i) + (load(winners + i) == Four{tap, tap, tap, tap} ? load(src + i) : Four{}));
  for (; i < count; ++i) dst[i] += winners[i] == tap ? src[i] : 0;
}

void run_max_back(const Call& call, ThreadPool& pool) {
  const PoolCall v(call);
  each_holder(v, pool, call.buffers[2].as<float>(), [&](float* dst, int64_t at, int64_t tap, int64_t, int64_t) {
    add_won(call.buffers[0].as<float>() + at, call.buffers[1].as<float>() + at, v.stride, static_cast<float>(tap), dst);
  });
}

void run_average_back(const Call& call, ThreadPool& pool) {
  const PoolCall v(call);
  each_holder(v, pool, call.buffers[1].as<float>(), [&](float* dst, int64_t at, int64_t, int64_t oy, int64_t ox) {
    const int64_t y = oy * v.sh - v.pad_t, x = ox * v.sw - v.pad_l;
    const int64_t down = std::min(v.h, y + v.kh) - std::max<int64_t>(0, y), across = std::min(v.w, x + v.kw) - std::max<int64_t>(0, x);
    const float inside = static_cast<float>(down * across), *src = call.buffers[0].as<float>() + at;
    for (int64_t i = 0; i < v.stride; ++i) dst[i] += src[i] / inside;
  });
}

}  // namespace

const Operation kUnfold{"unfold", 2, 16, 0, check_unfold, run_unfold};
const Operation kFold{"fold", 2, 16, 0, check_fold, run_fold};
const Operation kMaxPool{"max_pool", 3, 12, 0, check_max, run_max};
const Operation kMaxPoolGradient{"max_pool_gradient", 3, 12, 0, check_max_back, run_max_back};
const Operation kAveragePool{"average_pool", 2, 12, 0, check_average, run_average};
const Operation kAveragePoolGradient{"average_pool_gradient", 2, 12, 0, check_average_back, run_average_back};

}  // namespace pocketfarm::cpu
