// reduce: rows (outer, n, inner) to one number each.
#include <algorithm>

#include "operation.h"

namespace pocketfarm::cpu {
namespace {

constexpr int64_t kElementWork = 8;
constexpr int64_t kTogether = 256;  // neighbouring rows that are reduced at a time
enum Kind : int32_t { kSum, kMax, kMin, kProd, kArgMax, kArgMin, kLastArgMax, kLastArgMin, kSumOfSquares };

bool gives_place(int32_t kind) { return kind >= kArgMax && kind <= kLastArgMin; }

Status check_reduce(const Call& call) {
  const int64_t outer = call.ints[1], n = call.ints[2], inner = call.ints[3];
  Check check(call);
  check.range("kind", call.ints[0], kSum, kSumOfSquares).sizes({outer, n, inner});
  if (check.status()) return check.status();
  const Type from = call.buffers[0].type, to = call.buffers[1].type;
  if (gives_place(call.ints[0])) {
    check.that(to == Type::i32 || to == Type::i64, std::string("places are no numbers of ") + word(to));
  } else {
    check.that(from == to, std::string("numbers of ") + word(from) + " are not reduced to " + word(to));
    check.that(from == Type::f32 || call.floats[0] == 1, "whole numbers are not scaled");
  }
  return check.holds("src", 0, {outer, n, inner}).holds("dst", 1, {outer, inner}).status();
}

// Sums and products of whole numbers wrap around.
template <typename T>
T sum(T x, T y) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(std::make_unsigned_t<T>(x) + std::make_unsigned_t<T>(y));
  return x + y;
}
template <typename T>
T product(T x, T y) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(std::make_unsigned_t<T>(x) * std::make_unsigned_t<T>(y));
  return x * y;
}

// Takes the first number into each of `count` results.
template <typename T>
void begin(int32_t kind, const T* src, T* found, int64_t count) {
  for (int64_t i = 0; i < count; ++i) found[i] = kind == kSumOfSquares ? product(src[i], src[i]) : src[i];
}

// Takes one more number into each of `count` results.
template <typename T>
void fold(int32_t kind, const T* src, T* found, int64_t count) {
  switch (kind) {
    case kSum:
      for (int64_t i = 0; i < count; ++i) found[i] = sum(found[i], src[i]);
      return;
    case kMax:
      for (int64_t i = 0; i < count; ++i) found[i] = src[i] > found[i] || src[i] != src[i] ? src[i] : found[i];
      return;
    case kMin:
      for (int64_t i = 0; i < count; ++i) found[i] = src[i] < found[i] || src[i] != src[i] ? src[i] : found[i];
      return;
    case kSumOfSquares:
      for (int64_t i = 0; i < count; ++i) found[i] = sum(found[i], product(src[i], src[i]));
      return;
    default:
      for (int64_t i = 0; i < count; ++i) found[i] = product(found[i], src[i]);
  }
}

// Takes the results of other parts of rows into each of `count` results.
template <typename T>
void join(int32_t kind, const T* parts, T* found, int64_t count) {
  fold(kind == kSumOfSquares ? kSum : kind, parts, found, count);
}

template <typename T>
bool better(int32_t kind, T x, T than) {
  return kind == kArgMax ? x > than : kind == kArgMin ? x < than : kind == kLastArgMax ? x >= than : x <= than;
}

template <typename T>
int64_t place_of(int32_t kind, const T* src, int64_t n, int64_t stride) {
  int64_t at = 0;
  for (int64_t k = 1; k < n; ++k)
    if (better(kind, src[k * stride], src[at * stride])) at = k;
  return at;
}

void put(const View& places, int64_t at, int64_t place) {
  places.type == Type::i32 ? void(places.as<int32_t>()[at] = static_cast<int32_t>(place)) : void(places.as<int64_t>()[at] = place);
}

// `count` rows of neighbours, n numbers each, `stride` apart; parts of a row are joined, so that rounding stays small.
template <typename T>
void joined_rows(int32_t kind, const T* src, int64_t n, int64_t stride, T* found, int64_t count) {
  constexpr int64_t kPart = 128;
  T part[kTogether];
  begin(kind, src, found, count);
  for (int64_t first = 1; first < n; first += kPart) {
    begin(kind, src + first * stride, part, count);
    for (int64_t k = first + 1; k < std::min(first + kPart, n); ++k) fold(kind, src + k * stride, part, count);
    join(kind, part, found, count);
  }
}

// A row of neighbours: lanes first, so that it is a loop over vectors.
template <typename T>
T whole_row(int32_t kind, const T* src, int64_t n) {
  constexpr int64_t kLanes = 32;
  if (n < 2 * kLanes) {
    T found;
    begin(kind, src, &found, 1);
    for (int64_t k = 1; k < n; ++k) fold(kind, src + k, &found, 1);
    return found;
  }
  T lanes[kLanes];
  joined_rows(kind, src, n / kLanes, kLanes, lanes, kLanes);
  for (int64_t k = n - n % kLanes; k < n; ++k) fold(kind, src + k, lanes + k % kLanes, 1);
  for (int64_t half = kLanes / 2; half > 0; half /= 2) join(kind, lanes + half, lanes, half);
  return lanes[0];
}

template <typename T>
void reduce(const Call& call, ThreadPool& pool) {
  const int32_t kind = call.ints[0];
  const int64_t outer = call.ints[1], n = call.ints[2], inner = call.ints[3];
  const T* src = call.buffers[0].as<T>();
  const float scale = call.floats[0];
  const int64_t blocks = (inner + kTogether - 1) / kTogether;
  pool.shared(outer * blocks, kElementWork * n * std::min(inner, kTogether), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task % blocks * kTogether, count = std::min(kTogether, inner - first);
      const T* from = src + task / blocks * n * inner + first;
      const int64_t at = task / blocks * inner + first;
      if (gives_place(kind)) {
        for (int64_t i = 0; i < count; ++i) put(call.buffers[1], at + i, place_of(kind, from + i, n, inner));
        continue;
      }
      T* to = call.buffers[1].as<T>() + at;
      if (inner == 1) {
        *to = whole_row(kind, from, n);
      } else {
        joined_rows(kind, from, n, inner, to, count);
      }
      if constexpr (std::is_same_v<T, float>)
        for (int64_t i = 0; i < count; ++i) to[i] *= scale;
    }
  });
}

void run_reduce(const Call& call, ThreadPool& pool) {
  const Type type = call.buffers[0].type;
  type == Type::f32 ? reduce<float>(call, pool) : type == Type::i32 ? reduce<int32_t>(call, pool) : reduce<int64_t>(call, pool);
}

}  // namespace

const Operation kReduce{"reduce", 2, 4, 1, check_reduce, run_reduce, "n."};

}  // namespace pocketfarm::cpu
