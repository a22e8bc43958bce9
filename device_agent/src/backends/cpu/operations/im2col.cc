// Convolution by im2col and a matrix product, the matrix written out in full. Threads share out the start positions of
// windows in strides: of T threads the t-th takes t, t + T, t + 2T, ... and writes each column straight to its place.
// Source: Gao, Zhang and Mei's parallel Caffe for phones (2018).
#include "conv_call.h"
#include "backends/cpu/gemm/gemm.h"

namespace pocketfarm::cpu {
namespace {

constexpr size_t kColumns = 4;  // buffer

// The windows alone, in the order of the arguments.
struct Windows {
  int64_t n, c, h, w, oh, ow, kh, kw, sh, sw, pad_t, pad_l, dh, dw;

  explicit Windows(const Call& call) {
    const int32_t* i = call.ints.data();
    for (int64_t* field : {&n, &c, &h, &w, &oh, &ow, &kh, &kw, &sh, &sw, &pad_t, &pad_l, &dh, &dw}) *field = *i++;
  }
  int64_t group_inputs() const { return c; }
  int64_t pixels() const { return oh * ow; }
};

// Column `pixel` of the (taps, pixels) matrix: what the window at that output reads, zero outside the input.
template <typename V>
void write_column(const V& v, const float* input, int64_t pixel, float* columns) {
  const int64_t top = pixel / v.ow * v.sh - v.pad_t, left = pixel % v.ow * v.sw - v.pad_l;
  float* to = columns + pixel;
  for (int64_t channel = 0; channel < v.group_inputs(); ++channel, input += v.h * v.w)
    for (int64_t ky = 0; ky < v.kh; ++ky) {
      const int64_t y = top + ky * v.dh;
      for (int64_t kx = 0; kx < v.kw; ++kx, to += v.pixels()) {
        const int64_t x = left + kx * v.dw;
        *to = y >= 0 && y < v.h && x >= 0 && x < v.w ? input[y * v.w + x] : 0.0f;
      }
    }
}

template <typename V>
void write_columns(const V& v, const float* input, float* columns, ThreadPool& pool) {
  pool.each(pool.threads(), [&](int64_t start, int) {
    for (int64_t pixel = start; pixel < v.pixels(); pixel += pool.threads()) write_column(v, input, pixel, columns);
  });
}

void convolve(const ConvCall& v, int64_t image, int64_t group, float* columns, ThreadPool& pool) {
  const float* input = v.input(image, group * v.group_inputs());
  if (!v.is_pointwise()) write_columns(v, input, columns, pool);
  const int64_t rows = v.group_outputs();
  Gemm gemm{rows, v.pixels(), v.taps(), v.weight + group * rows * v.taps(), v.taps(), v.output(image, group * rows), v.pixels(), {}, {}};
  gemm.pack = pack_rows(v.is_pointwise() ? input : columns, v.pixels());
  gemm.finish = [&](const Block& block) {
    for (int64_t row = block.row; row < block.row + block.rows; ++row)
      v.finish(image, group * rows + row, block.column, block.columns);
  };
  multiply(gemm, pool);
}

Status check(const Call& call) {
  if (Status error = check_conv(call)) return error;
  const ConvCall v(call);
  return Check(call).holds("columns", kColumns, {v.is_pointwise() ? 1 : v.taps(), v.is_pointwise() ? 1 : v.pixels()}).status();
}

void run(const Call& call, ThreadPool& pool) {
  const ConvCall v(call);
  for (int64_t image = 0; image < v.n; ++image)
    for (int64_t group = 0; group < v.groups; ++group) convolve(v, image, group, call.buffers[kColumns].as<float>(), pool);
}

Status check_windows(const Call& call) {
  const Windows v(call);
  Check check(call);
  check.sizes({v.n, v.c, v.h, v.w, v.oh, v.ow, v.kh, v.kw, v.sh, v.sw, v.dh, v.dw})
      .range("pad_t", v.pad_t, 0, Check::kMaxSize)
      .range("pad_l", v.pad_l, 0, Check::kMaxSize);
  if (check.status()) return check.status();
  return check.holds("src", 0, {v.n, v.c, v.h, v.w}).holds("dst", 1, {v.n, v.c, v.kh, v.kw, v.oh, v.ow}).status();
}

void run_windows(const Call& call, ThreadPool& pool) {
  const Windows v(call);
  for (int64_t image = 0; image < v.n; ++image)
    write_columns(v, call.buffers[0].as<float>() + image * v.c * v.h * v.w,
                  call.buffers[1].as<float>() + image * v.c * v.kh * v.kw * v.pixels(), pool);
}

}  // namespace

const Operation kIm2col{"im2col", 2, 14, 0, check_windows, run_windows};
const Operation kConv2dIm2col{"conv2d_im2col", 6, 21, 2, check, run};

}  // namespace pocketfarm::cpu
