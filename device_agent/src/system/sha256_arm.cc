// SHA-2 instructions of ARMv8: four rounds an instruction.
#include "sha256_blocks.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#include <sys/auxv.h>

namespace pocketfarm {
namespace {

constexpr unsigned long kSha2 = 1ul << 6;  // HWCAP_SHA2

void blocks_arm(uint32_t* state, const uint8_t* data, size_t blocks) {
  uint32x4_t abcd = vld1q_u32(state), efgh = vld1q_u32(state + 4);
  for (; blocks > 0; --blocks, data += 64) {
    const uint32x4_t abcd_before = abcd, efgh_before = efgh;
    uint32x4_t w[4];
    for (int i = 0; i < 4; ++i) w[i] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(data + 16 * i)));
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      uint32x4_t& now = w[i % 4];
      if (i >= 4) now = vsha256su1q_u32(vsha256su0q_u32(now, w[(i + 1) % 4]), w[(i + 2) % 4], w[(i + 3) % 4]);
      const uint32x4_t added = vaddq_u32(now, vld1q_u32(kSha256Round + 4 * i)), before = abcd;
      abcd = vsha256hq_u32(abcd, efgh, added);
      efgh = vsha256h2q_u32(efgh, before, added);
    }
    abcd = vaddq_u32(abcd, abcd_before), efgh = vaddq_u32(efgh, efgh_before);
  }
  vst1q_u32(state, abcd), vst1q_u32(state + 4, efgh);
}

}  // namespace

Sha256Blocks sha256_arm() { return getauxval(AT_HWCAP) & kSha2 ? blocks_arm : nullptr; }

}  // namespace pocketfarm
#endif
