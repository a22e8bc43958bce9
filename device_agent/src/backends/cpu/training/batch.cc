// A batch out of the data set, what it costs, and its end: gather, cross_entropy, squared_error, count_batch.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "shuffle.h"

namespace pocketfarm::cpu {
namespace {

struct GatherCall : Shuffle {
  int64_t columns, hw, stride;
  float scale;

  explicit GatherCall(const Call& call)
      : Shuffle(call), columns(call.ints[5]), hw(call.ints[6]), stride(call.ints[7]), scale(call.floats[0]) {}
};

Status check_gather(const Call& call) {
  const GatherCall v(call);
  Check check(call);
  v.check(check, 1);
  check.sizes({v.columns, v.hw, v.stride}).holds("dst", 2, {v.batch, v.hw, v.stride});
  check.that(v.columns <= v.stride, "the columns are more than a row has");
  if (check.status()) return check.status();
  return check.that(v.samples <= call.buffers[0].elements / v.columns / v.hw, "the data set has fewer elements than the sizes ask for").status();
}

template <typename T>
void run_gather(const Call& call, ThreadPool& pool) {
  const GatherCall v(call);
  const T* data = call.buffers[0].as<T>();
  const uint32_t done = counted(call, 1);
  pool.ranges(v.batch, 8, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* from = data + v.drawn(done, row) * v.columns * v.hw;
      float* to = call.buffers[2].as<float>() + row * v.hw * v.stride;
      for (int64_t pixel = 0; pixel < v.hw; ++pixel, to += v.stride) {
        for (int64_t column = 0; column < v.columns; ++column) to[column] = v.scale * static_cast<float>(from[column * v.hw + pixel]);
        std::fill(to + v.columns, to + v.stride, 0.0f);
      }
    }
  });
}

Status check_cross_entropy(const Call& call) {
  const Shuffle v(call);
  const int64_t columns = call.ints[5], stride = call.ints[6];
  Check check(call);
  v.check(check, 2);
  check.sizes({columns, stride}).that(columns <= stride, "the columns are more than a row has");
  check.holds("src", 0, {v.batch, stride}).holds("dst", 3, {v.batch, stride}).holds("losses", 4, {2, v.batch});
  return check.that(v.samples <= call.buffers[1].elements, "there are fewer labels than samples").status();
}

void run_cross_entropy(const Call& call, ThreadPool&) {
  const Shuffle v(call);
  const int64_t columns = call.ints[5], stride = call.ints[6];
  const uint8_t* labels = call.buffers[1].as<uint8_t>();
  const uint32_t done = counted(call, 2);
  for (int64_t row = 0; row < v.batch; ++row) {
    const float* src = call.buffers[0].as<float>() + row * stride;
    float* dst = call.buffers[3].as<float>() + row * stride;
    const int64_t label = labels[v.drawn(done, row)], answer = std::max_element(src, src + columns) - src;
    float sum = 0;
    for (int64_t i = 0; i < columns; ++i) sum += std::exp(src[i] - src[answer]);
    std::fill(dst, dst + stride, 0.0f);
    for (int64_t i = 0; i < columns; ++i) dst[i] = (std::exp(src[i] - src[answer]) / sum - (i == label ? 1 : 0)) * call.floats[0];
    call.buffers[4].as<float>()[row] =
        label < columns ? std::log(sum) + src[answer] - src[label] : std::numeric_limits<float>::quiet_NaN();
    call.buffers[4].as<float>()[v.batch + row] = answer == label ? 0 : 1;
  }
}

Status check_squared_error(const Call& call) {
  const int64_t batch = call.ints[0], columns = call.ints[1], stride = call.ints[2];
  Check check(call);
  check.sizes({batch, columns, stride}).that(columns <= stride, "the columns are more than a row has");
  check.holds("src", 0, {batch, stride}).holds("target", 1, {batch, stride}).holds("dst", 2, {batch, stride});
  return check.holds("losses", 3, {stride}).status();
}

void run_squared_error(const Call& call, ThreadPool& pool) {
  const int64_t batch = call.ints[0], columns = call.ints[1], stride = call.ints[2];
  float* losses = call.buffers[3].as<float>();
  pool.ranges(stride, 64, [&](int64_t begin, int64_t end) {
    std::fill(losses + begin, losses + end, 0.0f);
    for (int64_t row = 0; row < batch; ++row)
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = row * stride + i;
        const float difference = i < columns ? call.buffers[0].as<float>()[at] - call.buffers[1].as<float>()[at] : 0;
        call.buffers[2].as<float>()[at] = difference * call.floats[0];
        losses[i] += 0.5f * difference * difference;
      }
  });
}

Status check_count(const Call& call) {
  const int64_t count = call.ints[0];
  return Check(call)
      .sizes({count, call.ints[1]})
      .range("classifies", call.ints[2], 0, 1)
      .holds("losses", 0, {1 + call.ints[2], count})
      .holds("report", 1, {2})
      .holds("counter", 2, {1})
      .status();
}

void run_count(const Call& call, ThreadPool&) {
  const int64_t count = call.ints[0];
  const float* losses = call.buffers[0].as<float>();
  float* report = call.buffers[1].as<float>();
  const uint32_t done = counted(call, 2), next = done + 1;
  float loss = 0, wrong = 0;
  for (int64_t i = 0; i < count; ++i) loss += losses[i];
  for (int64_t i = 0; call.ints[2] != 0 && i < count; ++i) wrong += losses[count + i];
  const bool first = done % static_cast<uint32_t>(call.ints[1]) == 0;
  report[0] = first ? loss : report[0] + loss;
  report[1] = first ? wrong : report[1] + wrong;
  std::memcpy(call.buffers[2].as<float>(), &next, sizeof next);
}

}  // namespace

const Operation kGather{"gather", 3, 8, 1, check_gather, run_gather<float>, "fif"};
const Operation kGatherBytes{"gather_bytes", 3, 8, 1, check_gather, run_gather<uint8_t>, "uif"};
const Operation kCrossEntropy{"cross_entropy", 5, 7, 1, check_cross_entropy, run_cross_entropy, "fuiff"};
const Operation kSquaredError{"squared_error", 4, 3, 1, check_squared_error, run_squared_error};
const Operation kCountBatch{"count_batch", 3, 3, 0, check_count, run_count, "ffi"};

}  // namespace pocketfarm::cpu
