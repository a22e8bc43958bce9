// A square of four by four floats that is turned in registers.
#pragma once

#include <cstdint>
#include <cstring>

namespace pocketfarm::cpu {

constexpr int64_t kSide = 4;

// to[j * to_stride + i] = from[i * from_stride + j]
inline void turn_square(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  typedef float Four __attribute__((vector_size(16)));
  Four rows[4], pairs[4];
  for (int64_t i = 0; i < 4; ++i) std::memcpy(&rows[i], from + i * from_stride, sizeof(Four));
  pairs[0] = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5);
  pairs[1] = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
  pairs[2] = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
  pairs[3] = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
  for (int64_t i = 0; i < 4; ++i) {
    const Four &low = pairs[i / 2 * 2], &high = pairs[i / 2 * 2 + 1];
    const Four row = i % 2 == 0 ? __builtin_shufflevector(low, high, 0, 1, 4, 5) : __builtin_shufflevector(low, high, 2, 3, 6, 7);
    std::memcpy(to + i * to_stride, &row, sizeof row);
  }
}

}  // namespace pocketfarm::cpu
