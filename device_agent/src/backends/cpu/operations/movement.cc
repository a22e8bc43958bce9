// transpose, copy_block and take_block.
#include <algorithm>

#include "operation.h"

namespace pocketfarm::cpu {
namespace {

constexpr int64_t kElementWork = 8;  // of one that is transposed

Status check_transpose(const Call& call) {
  const int32_t *d = call.ints.data(), *s = d + 4;
  Check check(call);
  check.sizes({d[0], d[1], d[2], d[3]});
  for (int i = 0; i < 4; ++i) check.range("a source stride", s[i], 0, Check::kMaxSize);
  if (check.status()) return check.status();
  check.holds("dst", 1, {d[0], d[1], d[2], d[3]});
  int64_t last = 0;  // each term is below 2^56
  for (int i = 0; i < 4; ++i) last += int64_t{d[i] - 1} * s[i];
  return check.holds("src", 0, {last + 1}).status();
}

// In squares of kSide, so that a line of the cache that was fetched is used whole, whichever way it lies.
template <typename T>
void transpose(const Call& call, ThreadPool& pool) {
  constexpr int64_t kSide = 16;
  const int32_t *d = call.ints.data(), *s = d + 4;
  pool.shared(int64_t{d[0]} * d[1] * d[2], kElementWork * d[3], [&](int64_t begin, int64_t end) {
    int64_t next = begin;
    for (int64_t row = begin; row < end; row = next) {
      const int64_t i0 = row / d[2] / d[1], i1 = row / d[2] % d[1], i2 = row % d[2];
      next = std::min({row + kSide, end, row - i2 + d[2]});
      const T* src = call.buffers[0].as<T>() + i0 * s[0] + i1 * s[1] + i2 * s[2];
      T* dst = call.buffers[1].as<T>() + row * d[3];
      if (s[3] == 1) {  // rows keep their order
        for (int64_t r = 0; r < next - row; ++r) std::copy_n(src + r * s[2], d[3], dst + r * d[3]);
        continue;
      }
      for (int64_t first = 0; first < d[3]; first += kSide)
        for (int64_t r = 0; r < next - row; ++r)
          for (int64_t i3 = first; i3 < std::min(first + kSide, int64_t{d[3]}); ++i3)
            dst[r * d[3] + i3] = src[r * s[2] + i3 * s[3]];
    }
  });
}

Status check_copy_block(const Call& call) {
  const int64_t outer = call.ints[0], count = call.ints[1], stride = call.ints[2], offset = call.ints[3];
  Check check(call);
  check.sizes({outer, count, stride});
  if (check.status()) return check.status();
  return check.range("dst_offset", offset, 0, stride - count)
      .holds("src", 0, {outer, count})
      .holds("dst", 1, {outer, stride})
      .status();
}

template <typename T>
void copy_block(const Call& call, ThreadPool& pool) {
  const int64_t outer = call.ints[0], count = call.ints[1], stride = call.ints[2], offset = call.ints[3];
  pool.shared(outer, count, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      std::copy_n(call.buffers[0].as<T>() + i * count, count, call.buffers[1].as<T>() + i * stride + offset);
  });
}

Status check_take_block(const Call& call) {
  const int64_t outer = call.ints[0], count = call.ints[1], stride = call.ints[2], offset = call.ints[3];
  Check check(call);
  check.sizes({outer, count, stride});
  if (check.status()) return check.status();
  return check.range("src_offset", offset, 0, stride - count)
      .holds("src", 0, {outer, stride})
      .holds("dst", 1, {outer, count})
      .status();
}

template <typename T>
void take_block(const Call& call, ThreadPool& pool) {
  const int64_t outer = call.ints[0], count = call.ints[1], stride = call.ints[2], offset = call.ints[3];
  pool.shared(outer, count, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      std::copy_n(call.buffers[0].as<T>() + i * stride + offset, count, call.buffers[1].as<T>() + i * count);
  });
}

void run_transpose(const Call& call, ThreadPool& pool) {
  with_size(call.buffers[0].type, [&](auto like) { transpose<decltype(like)>(call, pool); });
}
void run_copy_block(const Call& call, ThreadPool& pool) {
  with_size(call.buffers[0].type, [&](auto like) { copy_block<decltype(like)>(call, pool); });
}
void run_take_block(const Call& call, ThreadPool& pool) {
  with_size(call.buffers[0].type, [&](auto like) { take_block<decltype(like)>(call, pool); });
}

}  // namespace

const Operation kTranspose{"transpose", 2, 8, 0, check_transpose, run_transpose, "ee"};
const Operation kCopyBlock{"copy_block", 2, 4, 0, check_copy_block, run_copy_block, "ee"};
const Operation kTakeBlock{"take_block", 2, 4, 0, check_take_block, run_take_block, "ee"};

}  // namespace pocketfarm::cpu
