// The end of every convolution's call on blocks of sixteen channels: bias, residual and result, flags and activation.
#pragma once

#include "kernels.h"
#include "backends/cpu/operations/operation.h"

namespace pocketfarm::cpu {

class Output {
 public:
  Output() = default;
  // Buffers bias, residual and dst (the last) of `channels` from number `buffer` on; has_bias, has_residual, activation, dst_channels and
  // dst_offset from whole number `first` on; lo and hi.
  Output(const Call& call, size_t buffer, size_t first, int64_t channels, int64_t pixels);

  Status check(Check& check, const Call& call, size_t buffer, int64_t images, int64_t oh, int64_t ow) const;
  // Where a block of channels of an image begins.
  float* at(int64_t image, int64_t block) const;
  // For pixels from `pixel` on.
  Epilogue epilogue(int64_t image, int64_t block, int64_t pixel) const;
  // What the kernels leave over: activations with an exponential.
  void finish(float* data, int64_t count) const;

 private:
  const float *bias_ = nullptr, *residual_ = nullptr;
  float* dst_ = nullptr;
  int64_t channels_ = 0, pixels_ = 0, dst_channels_ = 0, dst_offset_ = 0;
  bool has_bias_ = false, has_residual_ = false;
  int32_t activation_ = 0;
  float lo_ = 0, hi_ = 0;
};

}  // namespace pocketfarm::cpu
