// The processor's own instructions for SHA-256, where it has some: several times as fast.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pocketfarm {

extern const uint32_t kSha256Round[64];

// Enters so many blocks of 64 bytes into the state.
using Sha256Blocks = void (*)(uint32_t* state, const uint8_t* data, size_t blocks);

// Null where the processor has no such instructions. Each is defined for its own architecture alone.
Sha256Blocks sha256_x86();
Sha256Blocks sha256_arm();

}  // namespace pocketfarm
