// Sliding windows over images whose pixels are rows: unfold and fold, pooling and its gradients.
#include <algorithm>

#include "backends/cpu/operations/operation.h"

namespace pocketfarm::cpu {
namespace {

struct Window {
  int64_t h, w, oh, ow, kh, kw, sh, sw, pad_t, pad_l;

  Window(const Call& call, size_t at)
      : h(call.ints[at]), w(call.ints[at + 1]), oh(call.ints[at + 2]), ow(call.ints[at + 3]), kh(call.ints[at + 4]),
        kw(call.ints[at + 5]), sh(call.ints[at + 6]), sw(call.ints[at + 7]), pad_t(call.ints[at + 8]), pad_l(call.ints[at + 9]) {}

  void check(Check& check) const {
    check.sizes({h, w, oh, ow, kh, kw, sh, sw}).range("pad_t", pad_t, 0, Check::kMaxSize).range("pad_l", pad_l, 0, Check::kMaxSize);
  }
};

// Output positions of a window along an axis that have pixel `at` at tap `tap`: -1 for none.
int64_t position(int64_t at, int64_t tap, int64_t stride, int64_t count) {
  const int64_t reach = at - tap;
  return reach >= 0 && reach % stride == 0 && reach / stride < count ? reach / stride : -1;
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

void run_unfold(const Call& call, ThreadPool& pool) {
  const FoldCall v(call);
  pool.ranges(call.ints[0], 64, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* image = call.buffers[0].data + row / v.ow / v.oh * v.h * v.w * v.src_stride;
      float* dst = call.buffers[1].data + row * v.stride;
      float* to = dst;
      for (int64_t ky = 0; ky < v.kh; ++ky)
        for (int64_t kx = 0; kx < v.kw; ++kx, to += v.channels) {
          const int64_t y = row / v.ow % v.oh * v.sh + ky * v.dh - v.pad_t, x = row % v.ow * v.sw + kx * v.dw - v.pad_l;
          const bool inside = y >= 0 && y < v.h && x >= 0 && x < v.w;
          if (inside) std::copy_n(image + (y * v.w + x) * v.src_stride, v.channels, to);
          if (!inside) std::fill_n(to, v.channels, 0.0f);
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
  check.that(count % (v.h * v.w * v.src_stride) == 0, "the elements are not of whole images").holds("dst", 1, {count});
  return check.holds("src", 0, {count / (v.h * v.w * v.src_stride), v.oh * v.ow, v.stride}).status();
}

void run_fold(const Call& call, ThreadPool& pool) {
  const FoldCall v(call);
  pool.ranges(call.ints[0] / v.src_stride, 64, [&](int64_t begin, int64_t end) {
    for (int64_t pixel = begin; pixel < end; ++pixel) {
      const int64_t x = pixel % v.w, y = pixel / v.w % v.h, image = pixel / v.w / v.h;
      float* dst = call.buffers[1].data + pixel * v.src_stride;
      std::fill_n(dst, v.src_stride, 0.0f);
      for (int64_t ky = 0; ky < v.kh; ++ky) {
        const int64_t oy = position(y + v.pad_t, ky * v.dh, v.sh, v.oh);
        for (int64_t kx = 0; kx < v.kw && oy >= 0; ++kx) {
          const int64_t ox = position(x + v.pad_l, kx * v.dw, v.sw, v.ow);
          if (ox < 0) continue;
          const float* src = call.buffers[0].data + ((image * v.oh + oy) * v.ow + ox) * v.stride + (ky * v.kw + kx) * v.channels;
          for (int64_t i = 0; i < v.channels; ++i) dst[i] += src[i];
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
    const int64_t image = h * w * stride, windows = oh * ow * stride, images = count / (back ? image : windows);
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

void run_max(const Call& call, ThreadPool& pool) {
  const PoolCall v(call);
  each_window(v, pool, [&](int64_t place, int64_t image, int64_t y, int64_t x) {
    float* dst = call.buffers[1].data + place * v.stride;
    float* winners = call.buffers[2].data + place * v.stride;
    std::fill_n(winners, v.stride, -1.0f);
    for (int64_t ky = std::max<int64_t>(0, -y); ky < std::min(v.kh, v.h - y); ++ky)
      for (int64_t kx = std::max<int64_t>(0, -x); kx < std::min(v.kw, v.w - x); ++kx) {
        const float* src = call.buffers[0].data + ((image * v.h + y + ky) * v.w + x + kx) * v.stride;
        const float tap = static_cast<float>(ky * v.kw + kx);
        for (int64_t i = 0; i < v.stride; ++i) {
          const bool wins = winners[i] < 0 || src[i] > dst[i];
          dst[i] = wins ? src[i] : dst[i];
          winners[i] = wins ? tap : winners[i];
        }
      }
  });
}

void run_average(const Call& call, ThreadPool& pool) {
  const PoolCall v(call);
  each_window(v, pool, [&](int64_t place, int64_t image, int64_t y, int64_t x) {
    float* dst = call.buffers[1].data + place * v.stride;
    std::fill_n(dst, v.stride, 0.0f);
    const int64_t y0 = std::max<int64_t>(0, y), y1 = std::min(v.h, y + v.kh), x0 = std::max<int64_t>(0, x), x1 = std::min(v.w, x + v.kw);
    for (int64_t row = y0; row < y1; ++row)
      for (int64_t column = x0; column < x1; ++column) {
        const float* src = call.buffers[0].data + ((image * v.h + row) * v.w + column) * v.stride;
        for (int64_t i = 0; i < v.stride; ++i) dst[i] += src[i];
      }
    const float inside = static_cast<float>((y1 - y0) * (x1 - x0));
    for (int64_t i = 0; i < v.stride; ++i) dst[i] /= inside;
  });
}

// For each pixel the windows that hold it: add(result of the pixel, position of the window, its tap, its row and column).
template <typename Add>
void each_holder(const PoolCall& v, ThreadPool& pool, float* to, Add add) {
  pool.ranges(v.count / v.stride, 64, [&](int64_t begin, int64_t end) {
    for (int64_t pixel = begin; pixel < end; ++pixel) {
      const int64_t x = pixel % v.w, y = pixel / v.w % v.h, image = pixel / v.w / v.h;
      float* dst = to + pixel * v.stride;
      std::fill_n(dst, v.stride, 0.0f);
      for (int64_t ky = 0; ky < v.kh; ++ky) {
        const int64_t oy = position(y + v.pad_t, ky, v.sh, v.oh);
        for (int64_t kx = 0; kx < v.kw && oy >= 0; ++kx) {
          const int64_t ox = position(x + v.pad_l, kx, v.sw, v.ow);
          if (ox >= 0) add(dst, ((image * v.oh + oy) * v.ow + ox) * v.stride, ky * v.kw + kx, oy, ox);
        }
      }
    }
  });
}

void run_max_back(const Call& call, ThreadPool& pool) {
  const PoolCall v(call);
  each_holder(v, pool, call.buffers[2].data, [&](float* dst, int64_t at, int64_t tap, int64_t, int64_t) {
    const float *src = call.buffers[0].data + at, *winners = call.buffers[1].data + at;
    for (int64_t i = 0; i < v.stride; ++i) dst[i] += winners[i] == static_cast<float>(tap) ? src[i] : 0;
  });
}

void run_average_back(const Call& call, ThreadPool& pool) {
  const PoolCall v(call);
  each_holder(v, pool, call.buffers[1].data, [&](float* dst, int64_t at, int64_t, int64_t oy, int64_t ox) {
    const int64_t y = oy * v.sh - v.pad_t, x = ox * v.sw - v.pad_l;
    const int64_t down = std::min(v.h, y + v.kh) - std::max<int64_t>(0, y), across = std::min(v.w, x + v.kw) - std::max<int64_t>(0, x);
    const float inside = static_cast<float>(down * across), *src = call.buffers[0].data + at;
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
