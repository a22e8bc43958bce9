// The sequential reference: the definitions of convolution and fully connected layer as nested loops, one output after
// the other on the calling thread.
#include "conv_call.h"
#include "dense_call.h"

namespace pocketfarm::cpu {
namespace {

float window_sum(const ConvCall& v, int64_t image, int64_t channel, int64_t oy, int64_t ox) {
  const int64_t first = channel / v.group_outputs() * v.group_inputs();
  const float* weight = v.weight + channel * v.taps();
  float sum = 0;
  for (int64_t c = 0; c < v.group_inputs(); ++c)
    for (int64_t ky = 0; ky < v.kh; ++ky)
      for (int64_t kx = 0; kx < v.kw; ++kx, ++weight) {
        const int64_t y = oy * v.sh + ky * v.dh - v.pad_t, x = ox * v.sw + kx * v.dw - v.pad_l;
        if (y >= 0 && y < v.h && x >= 0 && x < v.w) sum += *weight * v.input(image, first + c)[y * v.w + x];
      }
  return sum;
}

void run_conv(const Call& call, ThreadPool&) {
  const ConvCall v(call);
  for (int64_t image = 0; image < v.n; ++image)
    for (int64_t channel = 0; channel < v.k; ++channel) {
      float* out = v.output(image, channel);
      for (int64_t oy = 0; oy < v.oh; ++oy)
        for (int64_t ox = 0; ox < v.ow; ++ox) *out++ = window_sum(v, image, channel, oy, ox);
      v.finish(image, channel, 0, v.pixels());
    }
}

void run_dense(const Call& call, ThreadPool&) {
  const DenseCall v(call);
  for (int64_t row = 0; row < v.n; ++row)
    for (int64_t j = 0; j < v.m; ++j) {
      float sum = 0;
      for (int64_t i = 0; i < v.c; ++i) sum += v.src[row * v.c + i] * v.weight[i * v.m + j];
      float& out = v.dst[row * v.m + j];
      out = v.has_bias ? sum + v.bias[j] : sum;
      activate(&out, 1, v.activation, v.lo, v.hi);
    }
}

Status check_dense(const Call& call) {
  const DenseCall v(call);
  return Check(call)
      .sizes({v.n, v.c, v.m})
      .range("activation", v.activation, 0, kLastActivation)
      .holds("src", 0, {v.n, v.c})
      .holds("weight", 1, {v.c, v.m})
      .holds("bias", 2, {v.has_bias ? v.m : 1})
      .holds("dst", 3, {v.n, v.m})
      .status();
}

}  // namespace

const Operation kConv2dSequential{"conv2d_sequential", 5, 21, 2, check_conv, run_conv};
const Operation kDenseSequential{"dense_sequential", 4, 5, 2, check_dense, run_dense};

}  // namespace pocketfarm::cpu
