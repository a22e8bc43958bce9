// reduce: rows (outer, n, inner) to one number each.
#include <algorithm>

#include "operation.h"

namespace pocketfarm::cpu {
namespace {

constexpr int64_t kElementWork = 8;
constexpr int64_t kTogether = 256;  // neighbouring rows that are reduced at a time
enum Kind : int32_t { kSum, kMax, kMin, kProd, kArgMax, kArgMin, kLastArgMax, kLastArgMin, kSumOfSquares };

Status check_reduce(const Call& call) {
  const int64_t outer = call.ints[1], n = call.ints[2], inner = call.ints[3];
  Check check(call);
  check.range("kind", call.ints[0], kSum, kSumOfSquares).sizes({outer, n, inner});
  if (check.status()) return check.status();
  return check.holds("src", 0, {outer, n, inner}).holds("dst", 1, {outer, inner}).status();
}

bool gives_place(int32_t kind) { return kind >= kArgMax && kind <= kLastArgMin; }

// Takes the first number into each of `count` results.
void begin(int32_t kind, const float* src, float* found, int64_t count) {
  for (int64_t i = 0; i < count; ++i) found[i] = kind == kSumOfSquares ? src[i] * src[i] : src[i];
}

// Takes one more number into each of `count` results.
void fold(int32_t kind, const float* src, float* found, int64_t count) {
  switch (kind) {
    case kSum:
      for (int64_t i = 0; i < count; ++i) found[i] += src[i];
      return;
    case kMax:
      for (int64_t i = 0; i < count; ++i) found[i] = src[i] > found[i] || src[i] != src[i] ? src[i] : found[i];
      return;
    case kMin:
      for (int64_t i = 0; i < count; ++i) found[i] = src[i] < found[i] || src[i] != src[i] ? src[i] : found[i];
      return;
    case kSumOfSquares:
      for (int64_t i = 0; i < count; ++i) found[i] += src[i] * src[i];
      return;
    default:
      for (int64_t i = 0; i < count; ++i) found[i] *= src[i];
  }
}

// Takes the results of other parts of rows into each of `count` results.
void join(int32_t kind, const float* parts, float* found, int64_t count) {
  fold(kind == kSumOfSquares ? kSum : kind, parts, found, count);
}

bool better(int32_t kind, float x, float than) {
  return kind == kArgMax ? x > than : kind == kArgMin ? x < than : kind == kLastArgMax ? x >= than : x <= than;
}

float place_of(int32_t kind, const float* src, int64_t n, int64_t stride) {
  int64_t at = 0;
  for (int64_t k = 1; k < n; ++k)
    if (better(kind, src[k * stride], src[at * stride])) at = k;
  return static_cast<float>(at);
}

// `count` rows of neighbours, n numbers each, `stride` apart; parts of a row are joined, so that rounding stays small.
void joined_rows(int32_t kind, const float* src, int64_t n, int64_t stride, float* found, int64_t count) {
  constexpr int64_t kPart = 128;
  float part[kTogether];
  begin(kind, src, found, count);
  for (int64_t first = 1; first < n; first += kPart) {
    begin(kind, src + first * stride, part, count);
    for (int64_t k = first + 1; k < std::min(first + kPart, n); ++k) fold(kind, src + k * stride, part, count);
    join(kind, part, found, count);
  }
}

// A row of neighbours: lanes first, so that it is a loop over vectors.
float whole_row(int32_t kind, const float* src, int64_t n) {
  constexpr int64_t kLanes = 32;
  if (n < 2 * kLanes) {
    float found;
    begin(kind, src, &found, 1);
    for (int64_t k = 1; k < n; ++k) fold(kind, src + k, &found, 1);
    return found;
  }
  float lanes[kLanes];
  joined_rows(kind, src, n / kLanes, kLanes, lanes, kLanes);
  for (int64_t k = n - n % kLanes; k < n; ++k) fold(kind, src + k, lanes + k % kLanes, 1);
  for (int64_t half = kLanes / 2; half > 0; half /= 2) join(kind, lanes + half, lanes, half);
  return lanes[0];
}

void run_reduce(const Call& call, ThreadPool& pool) {
  const int32_t kind = call.ints[0];
  const int64_t outer = call.ints[1], n = call.ints[2], inner = call.ints[3];
  const float *src = call.buffers[0].data, scale = call.floats[0];
  float* dst = call.buffers[1].data;
  const int64_t blocks = (inner + kTogether - 1) / kTogether;
  pool.shared(outer * blocks, kElementWork * n * std::min(inner, kTogether), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task % blocks * kTogether, count = std::min(kTogether, inner - first);
      const float* from = src + task / blocks * n * inner + first;
      float* to = dst + task / blocks * inner + first;
      if (gives_place(kind)) {
        for (int64_t i = 0; i < count; ++i) to[i] = place_of(kind, from + i, n, inner);
        continue;
      }
      if (inner == 1) {
        *to = whole_row(kind, from, n);
      } else {
        joined_rows(kind, from, n, inner, to, count);
      }
      for (int64_t i = 0; i < count; ++i) to[i] *= scale;
    }
  });
}

}  // namespace

const Operation kReduce{"reduce", 2, 4, 1, check_reduce, run_reduce};

}  // namespace pocketfarm::cpu
