// The arguments of a convolution, as kernels/lower/cpu/agent_operations.py orders them.
#pragma once

#include "operation.h"

namespace pocketfarm::cpu {

struct ConvCall {
  const float *src, *weight, *bias, *residual;
  float* dst;
  int64_t n, c, h, w, k, oh, ow, kh, kw, sh, sw, pad_t, pad_l, dh, dw, groups;
  bool has_bias, has_residual;
  int32_t activation;
  int64_t dst_channels, dst_offset;
  float lo, hi;

  // The destination is the last of the buffers.
  explicit ConvCall(const Call& call);

  int64_t group_inputs() const { return c / groups; }
  int64_t group_outputs() const { return k / groups; }
  int64_t pixels() const { return oh * ow; }
  int64_t taps() const { return group_inputs() * kh * kw; }  // that one output sums
  // The input itself is the im2col matrix.
  bool is_pointwise() const {
    return kh == 1 && kw == 1 && sh == 1 && sw == 1 && pad_t == 0 && pad_l == 0 && oh == h && ow == w;
  }
  const float* input(int64_t image, int64_t channel) const { return src + (image * c + channel) * h * w; }
  float* output(int64_t image, int64_t channel) const {
    return dst + (image * dst_channels + dst_offset + channel) * pixels();
  }
  // Bias, residual and activation of `count` pixels of one output channel from `pixel` on.
  void finish(int64_t image, int64_t channel, int64_t pixel, int64_t count) const;
};

// Every number is in range and every buffer large enough.
Status check_conv(const Call& call);

}  // namespace pocketfarm::cpu
