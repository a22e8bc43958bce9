// The arguments of a dense layer, as kernels/lower/cpu/agent_operations.py orders them.
#pragma once

#include "operation.h"

namespace pocketfarm::cpu {

struct DenseCall {
  const float *src, *weight, *bias, *beside, *norm;
  float* dst;
  int64_t n, c, m;
  bool has_bias, normed;
  int32_t activation, joins;
  float lo, hi, epsilon;

  explicit DenseCall(const Call& call)
      : src(call.buffers[0].as<float>()), weight(call.buffers[1].as<float>()), bias(call.buffers[2].as<float>()),
        beside(call.buffers[3].as<float>()), norm(call.buffers[call.buffers.size() - 2].as<float>()), dst(call.buffers.back().as<float>()),
        n(call.ints[0]), c(call.ints[1]), m(call.ints[2]), has_bias(call.ints[3] != 0), normed(call.ints.size() > 6 && call.ints[6] != 0), activation(call.ints[4]),
        joins(call.ints.size() > 5 ? call.ints[5] : 0), lo(call.floats[0]), hi(call.floats[1]), epsilon(normed ? call.floats[2] : 0) {}
};

}  // namespace pocketfarm::cpu
