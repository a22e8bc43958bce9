// In which order an epoch takes the samples: kernels/training/shuffle.py, which says why.
#pragma once

#include "backends/cpu/operations/operation.h"

namespace pocketfarm::cpu {

// The first whole numbers of a call that draws samples, and the counter.
struct Shuffle {
  int64_t batch, batches, samples;
  uint32_t seed, half_bits;

  explicit Shuffle(const Call& call)
      : batch(call.ints[0]), batches(call.ints[1]), samples(call.ints[2]), seed(static_cast<uint32_t>(call.ints[3])),
        half_bits(static_cast<uint32_t>(call.ints[4])) {}

  // Every place of an epoch is a sample's, and the network holds them all.
  void check(Check& check, size_t counter) const;
  // The sample in row `row` of the batch after the `done` that are done.
  int64_t drawn(uint32_t done, int64_t row) const;
};

uint32_t counted(const Call& call, size_t counter);

}  // namespace pocketfarm::cpu
