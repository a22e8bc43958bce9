#include "output.h"

#include "nc16.h"

namespace pocketfarm::cpu {

Output::Output(const Call& call, size_t buffer, size_t first, int64_t channels, int64_t pixels)
    : bias_(call.buffers[buffer].as<float>()), residual_(call.buffers[buffer + 1].as<float>()), dst_(call.buffers.back().as<float>()),
      channels_(channels), pixels_(pixels), dst_channels_(call.ints[first + 3]), dst_offset_(call.ints[first + 4]),
      has_bias_(call.ints[first] != 0), has_residual_(call.ints[first + 1] != 0), activation_(call.ints[first + 2]),
      lo_(call.floats[0]), hi_(call.floats[1]) {}

Status Output::check(Check& check, const Call& call, size_t buffer, int64_t images, int64_t oh, int64_t ow) const {
  check.range("activation", activation_, 0, kLastActivation).sizes({dst_channels_});
  if (check.status()) return check.status();
  return check.range("dst_offset", dst_offset_, 0, dst_channels_ - channels_)
      .that(dst_offset_ % kBlock == 0, "dst_offset must be a multiple of 16")
      .holds("bias", buffer, {has_bias_ ? blocks_of(channels_) * kBlock : 1})
      .holds("residual", buffer + 1, {has_residual_ ? images : 1, has_residual_ ? blocks_of(channels_) : 1, kBlock, oh, ow})
      .holds("dst", call.buffers.size() - 1, {images, blocks_of(dst_channels_), kBlock, oh, ow})
      .status();
}

float* Output::at(int64_t image, int64_t block) const {
  return dst_ + (image * blocks_of(dst_channels_) + dst_offset_ / kBlock + block) * pixels_ * kBlock;
}

Epilogue Output::epilogue(int64_t image, int64_t block, int64_t pixel) const {
  Epilogue e;
  if (has_bias_) e.bias = bias_ + block * kBlock;
  if (has_residual_) e.residual = residual_ + ((image * blocks_of(channels_) + block) * pixels_ + pixel) * kBlock;
  e.residual_stride = pixels_ * kBlock;
  e.activation = activation_, e.lo = lo_, e.hi = hi_;
  return e;
}

void Output::finish(float* data, int64_t count) const {
  switch (static_cast<Activation>(activation_)) {
    case Activation::sigmoid:
    case Activation::tanh:
    case Activation::silu:
    case Activation::gelu:
    case Activation::gelu_tanh: return activate(data, count, activation_, lo_, hi_);
    default: return;
  }
}

}  // namespace pocketfarm::cpu
