#include "shuffle.h"

namespace pocketfarm::cpu {
namespace {

constexpr uint32_t kRounds = 6;
constexpr uint32_t kGolden = 0x9e3779b9;

uint32_t mixed(uint32_t h) {
  h ^= h >> 16;
  h *= 0x85ebca6b;
  h ^= h >> 13;
  h *= 0xc2b2ae35;
  return h ^ (h >> 16);
}

}  // namespace

void Shuffle::check(Check& check, size_t counter) const {
  check.sizes({batch, batches, samples}).range("half_bits", half_bits, 1, 15).holds("counter", counter, {1});
  check.that(batch * batches <= samples, "an epoch has more places than there are samples");
  check.that(half_bits <= 15 && samples <= int64_t{1} << (2 * half_bits), "half_bits are too few for the samples");
}

int64_t Shuffle::drawn(uint32_t done, int64_t row) const {
  const uint32_t low = (1u << half_bits) - 1;
  const uint32_t turns = static_cast<uint32_t>(batches);
  const uint32_t key = mixed(mixed(done / turns + kGolden) ^ seed);
  uint32_t place = done % turns * static_cast<uint32_t>(batch) + static_cast<uint32_t>(row);
  do {
    uint32_t left = place >> half_bits, right = place & low;
    for (uint32_t turn = 0; turn < kRounds; ++turn) {
      const uint32_t next = left ^ (mixed(right + key + turn * kGolden) & low);
      left = right;
      right = next;
    }
    place = left << half_bits | right;
  } while (place >= static_cast<uint32_t>(samples));
  return place;
}

uint32_t counted(const Call& call, size_t counter) {
  return *call.buffers[counter].as<uint32_t>();
}

}  // namespace pocketfarm::cpu
