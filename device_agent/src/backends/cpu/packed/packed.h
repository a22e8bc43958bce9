// Weights of few bits in blocks, as kernels/catalog/panels.py writes them: sixteen outputs side by side.
#pragma once

#include <cstdint>

#include "backends/cpu/nc16/nc16.h"

namespace pocketfarm::cpu {

// A weight is scale * factor * (code - zero) + offset * its factor; a block has a scale and an offset, a group the rest.
struct Packed {
  int64_t bits, block, group, zero, fields;

  bool wide() const { return fields & 1; }
  bool factors() const { return fields & 2; }
  bool offsets() const { return fields & 4; }
  bool offset_factors() const { return fields & 8; }
  bool zeros() const { return fields & 16; }

  // Of a block of all sixteen outputs.
  int64_t scale_bytes() const { return kBlock * (wide() ? 4 : 2); }
  int64_t offset_bytes() const { return offsets() ? scale_bytes() : 0; }
  int64_t group_bytes() const { return block / group * kBlock; }  // of each kind of factor
  int64_t bytes() const {
    return scale_bytes() + offset_bytes() + group_bytes() * (factors() + offset_factors() + zeros()) + block * kBlock * bits / 8;
  }
  int64_t blocks(int64_t columns) const { return (columns + block - 1) / block; }
  int64_t summed(int64_t blocks) const { return blocks * (block + block / group); }  // floats of a row and of its groups' sums
};

constexpr int64_t kMostPackedBlock = 256;
constexpr int64_t kPackedRows = 4;  // that meet a code while it is in a register

}  // namespace pocketfarm::cpu
