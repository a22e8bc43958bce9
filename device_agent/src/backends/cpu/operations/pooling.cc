// pool2d.
#include <algorithm>
#include <limits>

#include "backends/cpu/elements/kernels.h"
#include "operation.h"

namespace pocketfarm::cpu {
namespace {

constexpr int64_t kElementWork = 4;
enum Mode : int64_t { kMax = 0, kAverageValid = 1, kAverageWindow = 2 };

struct Pool {
  int64_t n, c, h, w, oh, ow, kh, kw, sh, sw, pad_t, pad_l, mode, dst_channels, dst_offset, pad_b, pad_r;

  explicit Pool(const Call& call) {
    const int32_t* i = call.ints.data();
    for (int64_t* field : {&n, &c, &h, &w, &oh, &ow, &kh, &kw, &sh, &sw, &pad_t, &pad_l, &mode, &dst_channels,
                           &dst_offset, &pad_b, &pad_r})
      *field = *i++;
  }
};

Status check_pool(const Call& call) {
  const Pool v(call);
  Check check(call);
  check.sizes({v.n, v.c, v.h, v.w, v.oh, v.ow, v.kh, v.kw, v.sh, v.sw, v.dst_channels}).range("mode", v.mode, 0, 2);
  for (int64_t pad : {v.pad_t, v.pad_l, v.pad_b, v.pad_r}) check.range("a pad", pad, 0, Check::kMaxSize);
  if (check.status()) return check.status();
  return check.range("dst_offset", v.dst_offset, 0, v.dst_channels - v.c)
      .holds("src", 0, {v.n, v.c, v.h, v.w})
      .holds("dst", 1, {v.n, v.dst_channels, v.oh, v.ow})
      .status();
}

// A window along one axis: its elements inside the input, and how many count in mode kAverageWindow.
struct Window {
  int64_t begin, end, padded;
};
Window window(int64_t first, int64_t kernel, int64_t extent, int64_t pad_end) {
  return {std::max<int64_t>(first, 0), std::min(first + kernel, extent), std::min(first + kernel, extent + pad_end) - first};
}

// Folds the rows of a window into one, column by column.
void fold_rows(const Pool& v, const ElementKernels& kernels, const float* src, const Window& y, float* row) {
  if (y.begin >= y.end) {
    std::fill_n(row, v.w, v.mode == kMax ? -std::numeric_limits<float>::infinity() : 0.0f);
    return;
  }
  std::copy_n(src + y.begin * v.w, v.w, row);
  for (int64_t iy = y.begin + 1; iy < y.end; ++iy) kernels.fold_row(v.mode == kMax, src + iy * v.w, row, v.w);
}

// Outputs whose windows lie inside of the row altogether.
struct Inner {
  int64_t begin, end;
};
Inner whole_windows(const Pool& v) {
  const int64_t begin = std::min((v.pad_l + v.sw - 1) / v.sw, v.ow), room = v.w + v.pad_l - v.kw;
  return {begin, room < 0 ? begin : std::max(begin, std::min(room / v.sw + 1, v.ow))};
}

void run_pool(const Call& call, ThreadPool& pool) {
  const Pool v(call);
  const ElementKernels& kernels = element_kernels();
  const Inner inner = whole_windows(v);
  pool.each(v.n * v.c, [&](int64_t plane, int thread) {
    float* row = pool.scratch(thread, static_cast<size_t>(v.w));
    const float* src = call.buffers[0].as<float>() + plane * v.h * v.w;
    float* dst = call.buffers[1].as<float>() + (plane / v.c * v.dst_channels + v.dst_offset + plane % v.c) * v.oh * v.ow;
    for (int64_t oy = 0; oy < v.oh; ++oy, dst += v.ow) {
      const Window y = window(oy * v.sh - v.pad_t, v.kh, v.h, v.pad_b);
      fold_rows(v, kernels, src, y, row);
      const auto fold = [&](int64_t ox, int64_t count) {  // outputs whose windows begin and end alike
        const Window x = window(ox * v.sw - v.pad_l, v.kw, v.w, v.pad_r);
        if (x.begin >= x.end) {
          std::fill_n(dst + ox, count, v.mode == kMax ? -std::numeric_limits<float>::infinity() : 0.0f);
        } else {
          kernels.fold_windows(v.mode == kMax, row + x.begin, dst + ox, count, v.sw, x.end - x.begin);
        }
        if (v.mode == kMax) return;
        const int64_t elements = v.mode == kAverageWindow ? y.padded * x.padded : (y.end - y.begin) * (x.end - x.begin);
        for (int64_t i = ox; i < ox + count; ++i) dst[i] /= static_cast<float>(elements);
      };
      for (int64_t ox = 0; ox < inner.begin; ++ox) fold(ox, 1);
      if (inner.end > inner.begin) fold(inner.begin, inner.end - inner.begin);
      for (int64_t ox = inner.end; ox < v.ow; ++ox) fold(ox, 1);
    }
  }, kElementWork * v.n * v.c * (v.h * v.w + v.oh * v.ow * v.kw));
}

}  // namespace

const Operation kPool2d{"pool2d", 2, 17, 0, check_pool, run_pool};

}  // namespace pocketfarm::cpu
