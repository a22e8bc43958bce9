// What a step reads and writes, in bytes of the plan's pools.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace pocketfarm {

struct Range {
  uint64_t place;  // number of a pool; beyond the last pool, of a buffer whose content waits in host memory
  uint64_t begin, end;
  bool written;

  // Whether the order of the two matters: one writes bytes that the other touches.
  bool clashes(const Range& other) const {
    return place == other.place && (written || other.written) && begin < other.end && other.begin < end;
  }
};

// Of any step but a transfer between backends.
std::vector<Range> accesses(const Plan& plan, const Step& step);

}  // namespace pocketfarm
