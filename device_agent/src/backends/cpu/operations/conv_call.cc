#include "conv_call.h"

namespace pocketfarm::cpu {

ConvCall::ConvCall(const Call& call) {
  src = call.buffers[0].as<float>(), weight = call.buffers[1].as<float>(), bias = call.buffers[2].as<float>();
  residual = call.buffers[3].as<float>(), dst = call.buffers.back().as<float>();
  const int32_t* i = call.ints.data();
  for (int64_t* field : {&n, &c, &h, &w, &k, &oh, &ow, &kh, &kw, &sh, &sw, &pad_t, &pad_l, &dh, &dw, &groups}) *field = *i++;
  has_bias = *i++ != 0, has_residual = *i++ != 0, activation = *i++, dst_channels = *i++, dst_offset = *i++;
  lo = call.floats[0], hi = call.floats[1];
}

void ConvCall::finish(int64_t image, int64_t channel, int64_t pixel, int64_t count) const {
  float* out = output(image, channel) + pixel;
  if (has_bias)
    for (int64_t i = 0; i < count; ++i) out[i] += bias[channel];
  if (has_residual) {
    const float* add = residual + (image * k + channel) * pixels() + pixel;
    for (int64_t i = 0; i < count; ++i) out[i] += add[i];
  }
  activate(out, count, activation, lo, hi);
}

Status check_conv(const Call& call) {
  const ConvCall v(call);
  Check check(call);
  check.sizes({v.n, v.c, v.h, v.w, v.k, v.oh, v.ow, v.kh, v.kw, v.sh, v.sw, v.dh, v.dw, v.groups, v.dst_channels})
      .range("pad_t", v.pad_t, 0, Check::kMaxSize)
      .range("pad_l", v.pad_l, 0, Check::kMaxSize)
      .range("activation", v.activation, 0, kLastActivation);
  if (check.status()) return check.status();
  return check.that(v.c % v.groups == 0 && v.k % v.groups == 0, "groups must divide c and k")
      .range("dst_offset", v.dst_offset, 0, v.dst_channels - v.k)
      .holds("src", 0, {v.n, v.c, v.h, v.w})
      .holds("weight", 1, {v.k, v.group_inputs(), v.kh, v.kw})
      .holds("bias", 2, {v.has_bias ? v.k : 1})
      .holds("residual", 3, {v.has_residual ? v.n : 1, v.has_residual ? v.k : 1, v.oh, v.ow})
      .holds("dst", call.buffers.size() - 1, {v.n, v.dst_channels, v.oh, v.ow})
      .status();
}

}  // namespace pocketfarm::cpu
