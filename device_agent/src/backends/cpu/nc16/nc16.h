// Activations in blocks of sixteen channels: element (n, c, y, x) at ((n * blocks + c / 16) * h * w + y * w + x) * 16 + c % 16.
// The lanes beyond the last channel hold anything: no operation lets them reach a channel.
#pragma once

#include <cstdint>

namespace pocketfarm::cpu {

constexpr int64_t kBlock = 16;

inline int64_t blocks_of(int64_t channels) { return (channels + kBlock - 1) / kBlock; }

}  // namespace pocketfarm::cpu
