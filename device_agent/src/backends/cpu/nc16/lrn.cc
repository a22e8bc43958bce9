// lrn on blocks of sixteen channels: the window goes across them.
#include <algorithm>

#include "nc16.h"
#include "kernels.h"
#include "backends/cpu/operations/operation.h"

namespace pocketfarm::cpu {
namespace {

constexpr int64_t kPixels = 64;  // of a task

Status check(const Call& call) {
  const int64_t n = call.ints[0], c = call.ints[1], hw = call.ints[2], size = call.ints[3];
  return Check(call)
      .sizes({n, c, hw, size})
      .holds("src", 0, {n, blocks_of(c), kBlock, hw})
      .holds("dst", 1, {n, blocks_of(c), kBlock, hw})
      .status();
}

void run(const Call& call, ThreadPool& pool) {
  const int64_t c = call.ints[1], hw = call.ints[2], size = call.ints[3], parts = (hw + kPixels - 1) / kPixels;
  Lrn lrn{};
  lrn.channels = c, lrn.block_stride = hw * kBlock;
  lrn.before = std::min((size - 1) / 2, c), lrn.after = std::min(size - 1 - (size - 1) / 2, c);
  lrn.alpha = call.floats[0] / static_cast<float>(size), lrn.beta = call.floats[1], lrn.bias = call.floats[2];
  const int64_t row = lrn.before + blocks_of(c) * kBlock + lrn.after;
  pool.each(call.ints[0] * parts, [&](int64_t i, int thread) {
    const int64_t part = i % parts, begin = hw * part / parts, end = hw * (part + 1) / parts;
    const int64_t at = i / parts * blocks_of(c) * lrn.block_stride + begin * kBlock;
    float* squares = pool.scratch(thread, static_cast<size_t>(row));
    nc16_kernels().lrn(lrn, call.buffers[0].as<float>() + at, end - begin, squares, call.buffers[1].as<float>() + at);
  });
}

}  // namespace

const Operation kLrnNc16{"lrn_nc16", 2, 4, 3, check, run};

}  // namespace pocketfarm::cpu
