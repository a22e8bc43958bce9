// What steps read and write, in bytes of the plan's pools, and which of them must wait for others.
#pragma once

#include <algorithm>
#include <cstddef>
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

// Which steps must wait for earlier ones: ranges read and written since the last barrier.
class Hazards {
 public:
  // True where a step with these accesses needs a barrier before it (write after read, read or write after write).
  bool add(const std::vector<Range>& accesses) {
    const bool clash = std::any_of(accesses.begin(), accesses.end(), [&](const Range& access) { return clashes(access); });
    if (clash) pending_.clear();
    pending_.insert(pending_.end(), accesses.begin(), accesses.end());
    return clash;
  }

 private:
  bool clashes(const Range& access) const {
    return std::any_of(pending_.begin(), pending_.end(), [&](const Range& other) { return other.clashes(access); });
  }

  std::vector<Range> pending_;
};

// A plan's swaps beside its other steps: three lanes, each in order, that wait for each other only where they must.
inline constexpr size_t kLanes = 3;

// 0: kernels and copies; 1: what comes back from host memory; 2: what goes there.
inline size_t lane_of(const Step& step) {
  return step.kind == Step::Kind::swap_in ? 1 : step.kind == Step::Kind::swap_out ? 2 : 0;
}

// What the lanes of a plan wait for.
struct Lanes {
  // Of each step, those of other lanes that must have ended, one of a lane at most; what a step before it in its lane
  // waits for is not repeated.
  std::vector<std::vector<size_t>> waits;
  std::vector<bool> awaited;  // of each step: whether one of another lane waits for it

  // Empty where the plan swaps nothing.
  static Lanes of(const Plan& plan);
  bool any() const { return !waits.empty(); }
};

}  // namespace pocketfarm
