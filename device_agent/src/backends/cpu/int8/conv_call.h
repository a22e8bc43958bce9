// What conv2d_int8 and depthwise_int8 are given, and the end of both: sums to results.
#pragma once

#include "quantized.h"
#include "backends/cpu/nc16/nc16.h"
#include "backends/cpu/operations/operation.h"

namespace pocketfarm::cpu {

enum class Int8Source : int64_t { blocks = 0, plain = 1, codes = 2 };

struct Int8Conv {
  const float *src, *scales, *bias, *residual, *affine;  // affine: of k blocks sixteen factors each, then so many shifts
  const int8_t* weight;
  const int32_t* sums;
  uint8_t *values, *codes;  // `values` of conv2d_int8 only
  float* dst;
  int64_t n, c, h, w, k, oh, ow, kh, kw, sh, sw, pad_t, pad_l, dh, dw, groups;
  Int8Source source;
  bool has_bias;
  int64_t has_residual;  // 1 as floats, 2 as whole numbers
  int32_t activation;
  int64_t dst_channels, dst_offset;
  Int8By by;
  bool has_offsets, sums_rounded, scaled, branch_rounded;
  int64_t writes;  // 1 floats, 2 whole numbers, 4 floats of these
  float lo, hi;
  Int8Steps steps, sums_grid, branch_grid, residual_steps, out_steps;  // where they are given
  int64_t rows, columns;  // of the image in whole numbers: what the windows read, its edges too

  explicit Int8Conv(const Call& call);
  int64_t source_blocks() const { return source == Int8Source::plain ? 1 : blocks_of(c); }
  int64_t lanes() const { return source == Int8Source::plain ? (c + 3) / 4 * 4 : kBlock; }
  const int32_t* offsets(int64_t block) const { return sums + (blocks_of(k) + block) * kBlock; }
  // What both operations ask for; `depth` is a window's.
  Status check(const Call& call, int64_t depth) const;
};

// The end of a block of outputs of one image.
class Int8End {
 public:
  Int8End(const Int8Conv& conv, const Int8Steps& of_input, int64_t image, int64_t block);
  Int8End(const Int8End&) = delete;
  // From the sums of `pixels` outputs, kInt8MostPixels at most; `windows`: of each, where weights have offsets.
  void finish(const Int8Kernels& kernels, int64_t pixel, int64_t pixels, const int32_t* sums, const int32_t* windows = nullptr);

 private:
  const Int8Conv& v_;
  int64_t own_, target_;  // where the block begins, in a tensor of the layer's channels and in the result
  int32_t start_[kBlock];
  float factor_[kBlock];
  Int8Finish how_{};
};

}  // namespace pocketfarm::cpu
