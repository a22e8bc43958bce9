// to_nc16 and from_nc16: between row-major tensors and blocks of sixteen channels.
#include <algorithm>

#include "nc16.h"
#include "backends/cpu/gemm/square.h"
#include "backends/cpu/operations/operation.h"

namespace pocketfarm::cpu {
namespace {

constexpr int64_t kGrain = 4096;  // elements that are worth a thread
constexpr int64_t kElementWork = 4;
constexpr int64_t kRun = 64;      // pixels that are turned together

Status check_from(const Call& call) {
  const int64_t n = call.ints[0], c = call.ints[1], hw = call.ints[2];
  return Check(call).sizes({n, c, hw}).holds("src", 0, {n, blocks_of(c), kBlock, hw}).holds("dst", 1, {n, c, hw}).status();
}

Status check_to(const Call& call) {
  const int64_t n = call.ints[0], c = call.ints[1], hw = call.ints[2];
  return Check(call).sizes({n, c, hw}).holds("src", 0, {n, c, hw}).holds("dst", 1, {n, blocks_of(c), kBlock, hw}).status();
}

// Calls visit(plain, blocked, lanes, pixels) for runs of pixels of a block: vectors of its channels, which lie `hw` apart in
// the plain tensor. A run's vectors stay in the first cache; it is turned by squares.
template <typename Visit>
void each_run(const Call& call, ThreadPool& pool, float* plain, float* blocked, const Visit& visit) {
  const int64_t c = call.ints[1], hw = call.ints[2], blocks = blocks_of(c);
  const int64_t parts = (hw + kGrain - 1) / kGrain, planes = call.ints[0] * blocks;
  pool.each(planes * parts, [&](int64_t i, int) {
    const int64_t part = i % parts, plane = i / parts, block = plane % blocks;
    const int64_t lanes = std::min(kBlock, c - block * kBlock), end = hw * (part + 1) / parts;
    float* from = plain + (plane / blocks * c + block * kBlock) * hw;
    for (int64_t pixel = hw * part / parts; pixel < end; pixel += kRun)
      visit(from + pixel, blocked + (plane * hw + pixel) * kBlock, lanes, std::min(kRun, end - pixel));
  }, kElementWork * planes * kBlock * hw);
}

void run_from(const Call& call, ThreadPool& pool) {
  const int64_t hw = call.ints[2];
  const auto visit = [&](float* plain, const float* block, int64_t lanes, int64_t pixels) {
    for (int64_t lane = 0; lane < lanes; lane += kSide) {
      int64_t pixel = 0;
      if (lane + kSide <= lanes)
        for (; pixel + kSide <= pixels; pixel += kSide)
          turn_square(block + pixel * kBlock + lane, kBlock, plain + lane * hw + pixel, hw);
      for (int64_t one = lane; one < std::min(lane + kSide, lanes); ++one)
        for (int64_t rest = pixel; rest < pixels; ++rest) plain[one * hw + rest] = block[rest * kBlock + one];
    }
  };
  each_run(call, pool, call.buffers[1].as<float>(), call.buffers[0].as<float>(), visit);
}

void run_to(const Call& call, ThreadPool& pool) {
  const int64_t hw = call.ints[2];
  const auto visit = [&](const float* plain, float* block, int64_t lanes, int64_t pixels) {
    for (int64_t lane = 0; lane < lanes; lane += kSide) {
      int64_t pixel = 0;
      if (lane + kSide <= lanes)
        for (; pixel + kSide <= pixels; pixel += kSide)
          turn_square(plain + lane * hw + pixel, hw, block + pixel * kBlock + lane, kBlock);
      for (int64_t one = lane; one < std::min(lane + kSide, lanes); ++one)
        for (int64_t rest = pixel; rest < pixels; ++rest) block[rest * kBlock + one] = plain[one * hw + rest];
    }
    for (int64_t lane = lanes; lane < kBlock; ++lane)
      for (int64_t pixel = 0; pixel < pixels; ++pixel) block[pixel * kBlock + lane] = 0;
  };
  each_run(call, pool, call.buffers[0].as<float>(), call.buffers[1].as<float>(), visit);
}

}  // namespace

const Operation kToNc16{"to_nc16", 2, 3, 0, check_to, run_to};
const Operation kFromNc16{"from_nc16", 2, 3, 0, check_from, run_from};

}  // namespace pocketfarm::cpu
