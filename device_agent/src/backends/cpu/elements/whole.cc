// The functions of `map_whole`, by the codes of kernels/ir/expressions.py and kernels/lower/cpu/functions.py: numbers of one
// width that wrap around. A quotient is cut off; by 0 it is 0, and so is the remainder. A shift by less than 0 or by all bits
// gives 0. A power below 1 is that of 1 and -1, else 0.
#include <type_traits>

#include "kernels.h"

namespace pocketfarm::cpu {
namespace {

template <typename T>
T power(T base, T exponent) {
  using U = std::make_unsigned_t<T>;
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0;
  U found = 1, square = static_cast<U>(base);
  for (auto left = static_cast<U>(exponent); left != 0; left >>= 1, square *= square)
    if (left & 1) found *= square;
  return static_cast<T>(found);
}

template <typename T, typename Compute>
void each(T* to, const T* a, int64_t n, Compute compute) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(compute(a[i]));
}

template <typename T, typename Compute>
void both(T* to, const T* a, const T* b, int64_t n, Compute compute) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(compute(a[i], b[i]));
}

template <typename T>
void apply(int function, T* to, const T* a, const T* b, const T* c, int64_t n) {
  using U = std::make_unsigned_t<T>;
  constexpr T kBits = 8 * sizeof(T);
  const auto u = [](T x) { return static_cast<U>(x); };
  switch (function) {
    case 0: return both(to, a, b, n, [=](T x, T y) { return u(x) + u(y); });
    case 1: return both(to, a, b, n, [=](T x, T y) { return u(x) - u(y); });
    case 2: return both(to, a, b, n, [=](T x, T y) { return u(x) * u(y); });
    case 3: return both(to, a, b, n, [=](T x, T y) { return y == 0 ? 0 : y == -1 ? static_cast<T>(0 - u(x)) : x / y; });
    case 4: return both(to, a, b, n, [](T x, T y) { return x < y ? x : y; });
    case 5: return both(to, a, b, n, [](T x, T y) { return x > y ? x : y; });
    case 6: return both(to, a, b, n, power<T>);
    case 7: return both(to, a, b, n, [](T x, T y) { return x < y; });
    case 8: return both(to, a, b, n, [](T x, T y) { return x == y; });
    case 9:
      for (int64_t i = 0; i < n; ++i) to[i] = a[i] != 0 ? b[i] : c[i];
      return;
    case 10: return each(to, a, n, [=](T x) { return 0 - u(x); });
    case 11: return each(to, a, n, [=](T x) { return x < 0 ? 0 - u(x) : u(x); });
    case 29: return both(to, a, b, n, [](T x, T y) { return y == 0 || y == -1 ? 0 : x % y; });
    case 30: return both(to, a, b, n, [=](T x, T y) { return y < 0 || y >= kBits ? 0 : u(x) << y; });
    case 31: return both(to, a, b, n, [=](T x, T y) { return y < 0 || y >= kBits ? 0 : u(x) >> y; });
    case 32: return both(to, a, b, n, [](T x, T y) { return x & y; });
    case 33: return both(to, a, b, n, [](T x, T y) { return x | y; });
    case 34: return both(to, a, b, n, [](T x, T y) { return x ^ y; });
    case 35: return each(to, a, n, [](T x) { return ~x; });
    case 36: return each(to, a, n, [](T x) { return static_cast<int8_t>(x); });
    case 37: return each(to, a, n, [](T x) { return static_cast<uint8_t>(x); });
    case 38: return each(to, a, n, [](T x) { return static_cast<int16_t>(x); });
    case 39: return each(to, a, n, [](T x) { return static_cast<uint16_t>(x); });
    case 40: return each(to, a, n, [](T x) { return static_cast<uint32_t>(x); });
    default: return;
  }
}

}  // namespace

void apply_whole(int function, int32_t* to, const int32_t* a, const int32_t* b, const int32_t* c, int64_t n) {
  apply(function, to, a, b, c, n);
}
void apply_whole(int function, int64_t* to, const int64_t* a, const int64_t* b, const int64_t* c, int64_t n) {
  apply(function, to, a, b, c, n);
}

}  // namespace pocketfarm::cpu
