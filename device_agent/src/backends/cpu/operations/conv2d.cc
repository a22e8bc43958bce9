// Convolution: im2col packed panel by panel into a blocked matrix product; depthwise directly.
#include <algorithm>
#include <cstring>

#include "conv_call.h"
#include "backends/cpu/gemm/gemm.h"

namespace pocketfarm::cpu {
namespace {

constexpr int64_t kMinGemmRows = 4;  // outputs per group from which the matrix product pays

// Outputs x in [first, first + count) of one row that read inside the input at tap column `kx`.
struct Inside {
  int64_t begin, end;
};
Inside inside(const ConvCall& v, int64_t kx, int64_t first, int64_t count) {
  const int64_t shift = kx * v.dw - v.pad_l;  // input column of output column 0
  const int64_t low = shift >= 0 ? 0 : (-shift + v.sw - 1) / v.sw;
  const int64_t high = v.w - shift <= 0 ? 0 : (v.w - shift + v.sw - 1) / v.sw;
  const int64_t begin = std::clamp(low, first, first + count);
  return {begin, std::clamp(high, begin, first + count)};
}

// One row of the im2col matrix: input row `iy` at tap column `kx` for outputs x in [first, first + count).
void gather_row(const ConvCall& v, const float* channel, int64_t iy, int64_t kx, int64_t first, int64_t count, float* out) {
  if (iy < 0 || iy >= v.h) {
    std::fill(out, out + count, 0.0f);
    return;
  }
  const Inside valid = inside(v, kx, first, count);
  const float* from = channel + iy * v.w + (valid.begin * v.sw + kx * v.dw - v.pad_l);
  float* to = std::fill_n(out, valid.begin - first, 0.0f);
  const int64_t width = valid.end - valid.begin;
  if (v.sw == 1) {
    std::memcpy(to, from, static_cast<size_t>(width) * sizeof(float));
  } else {
    for (int64_t i = 0; i < width; ++i) to[i] = from[i * v.sw];
  }
  std::fill(to + width, out + count, 0.0f);
}

void gather_tap(const ConvCall& v, const float* channel, int64_t ky, int64_t kx, int64_t pixel, int64_t count, float* out) {
  int64_t oy = pixel / v.ow, ox = pixel % v.ow;
  for (int64_t done = 0, run; done < count; done += run, ++oy, ox = 0) {
    run = std::min(count - done, v.ow - ox);
    gather_row(v, channel, oy * v.sh + ky * v.dh - v.pad_t, kx, ox, run, out + done);
  }
}

void by_matrix_product(const ConvCall& v, int64_t image, int64_t group, ThreadPool& pool) {
  const int64_t rows = v.group_outputs(), taps = v.kh * v.kw, depth = v.group_inputs() * taps;
  Gemm gemm{rows, v.pixels(), depth, v.weight + group * rows * depth, depth, v.output(image, group * rows), v.pixels(), {}, {}};
  const float* input = v.input(image, group * v.group_inputs());
  gemm.pack = pack_rows(input, v.pixels());
  if (!v.is_pointwise())
    gemm.pack = [&](int64_t first_k, int64_t ks, int64_t column, int64_t columns, int64_t width, float* panel) {
      for (int64_t i = first_k; i < first_k + ks; ++i, panel += width) {
        const int64_t tap = i % taps;
        gather_tap(v, input + i / taps * v.h * v.w, tap / v.kw, tap % v.kw, column, columns, panel);
        std::fill(panel + columns, panel + width, 0.0f);
      }
    };
  gemm.finish = [&](const Block& block) {
    for (int64_t row = block.row; row < block.row + block.rows; ++row)
      v.finish(image, group * rows + row, block.column, block.columns);
  };
  multiply(gemm, pool);
}

// One output channel: every tap adds a scaled, shifted input row.
void directly(const ConvCall& v, int64_t image, int64_t channel) {
  float* out = v.output(image, channel);
  std::fill_n(out, v.pixels(), 0.0f);
  const int64_t first = channel / v.group_outputs() * v.group_inputs();
  const float* weight = v.weight + channel * v.group_inputs() * v.kh * v.kw;
  for (int64_t ci = 0; ci < v.group_inputs(); ++ci)
    for (int64_t ky = 0; ky < v.kh; ++ky)
      for (int64_t kx = 0; kx < v.kw; ++kx) {
        const float factor = *weight++;
        const Inside valid = inside(v, kx, 0, v.ow);
        for (int64_t oy = 0; oy < v.oh; ++oy) {
          const int64_t iy = oy * v.sh + ky * v.dh - v.pad_t;
          if (iy < 0 || iy >= v.h) continue;
          const float* row = v.input(image, first + ci) + iy * v.w + (kx * v.dw - v.pad_l);
          float* target = out + oy * v.ow;
          if (v.sw == 1) {
            for (int64_t ox = valid.begin; ox < valid.end; ++ox) target[ox] += factor * row[ox];
          } else {
            for (int64_t ox = valid.begin; ox < valid.end; ++ox) target[ox] += factor * row[ox * v.sw];
          }
        }
      }
  v.finish(image, channel, 0, v.pixels());
}

void run(const Call& call, ThreadPool& pool) {
  const ConvCall v(call);
  if (v.group_outputs() < kMinGemmRows && v.groups > 1) {
    pool.each(v.n * v.k, [&](int64_t i, int) { directly(v, i / v.k, i % v.k); });
    return;
  }
  for (int64_t image = 0; image < v.n; ++image)
    for (int64_t group = 0; group < v.groups; ++group) by_matrix_product(v, image, group, pool);
}

}  // namespace

const Operation kConv2d{"conv2d", 5, 21, 2, check_conv, run};

}  // namespace pocketfarm::cpu
