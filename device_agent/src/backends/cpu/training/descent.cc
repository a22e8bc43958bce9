// Number by number: activate, activation_gradient, column_sums, accumulate, gradient_step, momentum_step. `count` is of
// vectors of four, but for activation_gradient.
#include <algorithm>
#include <cmath>

#include "shuffle.h"

namespace pocketfarm::cpu {
namespace {

constexpr int64_t kGrain = 16384;  // elements that are worth a thread

Status check_activate(const Call& call) {
  const int64_t count = call.ints[0];
  return Check(call)
      .sizes({count})
      .range("activation", call.ints[1], 0, kLastActivation)
      .holds("src", 0, {4, count})
      .holds("dst", 1, {4, count})
      .status();
}

void run_activate(const Call& call, ThreadPool& pool) {
  const float* src = call.buffers[0].as<float>();
  float* dst = call.buffers[1].as<float>();
  pool.ranges(4 * int64_t{call.ints[0]}, kGrain, [&](int64_t begin, int64_t end) {
    if (src != dst) std::copy(src + begin, src + end, dst + begin);
    activate(dst + begin, end - begin, call.ints[1], call.floats[0], call.floats[1]);
  });
}

Status check_gradient(const Call& call) {
  const int64_t count = call.ints[0];
  return Check(call).sizes({count}).holds("value", 0, {count}).holds("src", 1, {count}).holds("dst", 2, {count}).status();
}

void run_gradient(const Call& call, ThreadPool& pool) {
  const float *value = call.buffers[0].as<float>(), *src = call.buffers[1].as<float>();
  float* dst = call.buffers[2].as<float>();
  const auto activation = static_cast<Activation>(call.ints[1]);
  const bool relu = activation == Activation::relu, tanh = activation == Activation::tanh;
  pool.ranges(call.ints[0], kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      dst[i] = relu ? (value[i] > 0 ? src[i] : 0) : src[i] * (tanh ? 1 - value[i] * value[i] : value[i] * (1 - value[i]));
  });
}

Status check_sums(const Call& call) {
  const int64_t rows = call.ints[0], columns4 = call.ints[1], each = call.ints[2];
  Check check(call);
  check.sizes({rows, columns4, each});
  if (check.status()) return check.status();
  return check.holds("src", 0, {rows, columns4, 4}).holds("dst", 1, {(rows + each - 1) / each, columns4, 4}).status();
}

void run_sums(const Call& call, ThreadPool& pool) {
  const int64_t rows = call.ints[0], columns = 4 * int64_t{call.ints[1]}, each = call.ints[2];
  pool.ranges((rows + each - 1) / each, std::max<int64_t>(1, kGrain / (each * columns)), [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      float* dst = call.buffers[1].as<float>() + part * columns;
      std::fill(dst, dst + columns, 0.0f);
      for (int64_t row = part * each; row < std::min(rows, (part + 1) * each); ++row) {
        const float* src = call.buffers[0].as<float>() + row * columns;
        for (int64_t i = 0; i < columns; ++i) dst[i] += src[i];
      }
    }
  });
}

Status check_accumulate(const Call& call) {
  const int64_t count = call.ints[0];
  return Check(call).sizes({count}).holds("src", 0, {4, count}).holds("dst", 1, {4, count}).status();
}

void run_accumulate(const Call& call, ThreadPool& pool) {
  const float* src = call.buffers[0].as<float>();
  float* dst = call.buffers[1].as<float>();
  pool.ranges(4 * int64_t{call.ints[0]}, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) dst[i] += src[i];
  });
}

Status check_step(const Call& call) {
  const int64_t count = call.ints[0], epochs = call.ints[2];
  return Check(call)
      .sizes({count, call.ints[1], epochs})
      .holds("gradient", 0, {4, count})
      .holds("rates", 1, {epochs})
      .holds("counter", 2, {1})
      .holds("weight", 3, {4, count})
      .status();
}

float rate_of(const Call& call) {
  const uint32_t epoch = counted(call, 2) / static_cast<uint32_t>(call.ints[1]);
  return call.buffers[1].as<float>()[std::min(epoch, static_cast<uint32_t>(call.ints[2]) - 1)];
}

void run_step(const Call& call, ThreadPool& pool) {
  const float *gradient = call.buffers[0].as<float>(), rate = rate_of(call);
  float* weight = call.buffers[3].as<float>();
  pool.ranges(4 * int64_t{call.ints[0]}, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) weight[i] -= rate * gradient[i];
  });
}

Status check_momentum(const Call& call) {
  if (auto error = check_step(call)) return error;
  return Check(call).holds("velocity", 4, {4, call.ints[0]}).status();
}

void run_momentum(const Call& call, ThreadPool& pool) {
  const float *gradient = call.buffers[0].as<float>(), rate = rate_of(call), momentum = call.floats[0];
  float *weight = call.buffers[3].as<float>(), *velocity = call.buffers[4].as<float>();
  pool.ranges(4 * int64_t{call.ints[0]}, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      velocity[i] = momentum * velocity[i] + gradient[i];
      weight[i] -= rate * velocity[i];
    }
  });
}

}  // namespace

const Operation kActivate{"activate", 2, 2, 2, check_activate, run_activate};
const Operation kActivationGradient{"activation_gradient", 3, 2, 0, check_gradient, run_gradient};
const Operation kColumnSums{"column_sums", 2, 3, 0, check_sums, run_sums};
const Operation kAccumulate{"accumulate", 2, 1, 0, check_accumulate, run_accumulate};
const Operation kGradientStep{"gradient_step", 4, 3, 0, check_step, run_step, "ffif"};
const Operation kMomentumStep{"momentum_step", 5, 3, 1, check_momentum, run_momentum, "ffiff"};

}  // namespace pocketfarm::cpu
