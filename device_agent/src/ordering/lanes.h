// A plan's swaps beside its other steps: three lanes, each in order, that wait for each other only where they must.
#pragma once

#include <cstddef>
#include <vector>

#include "plan/plan.h"

namespace pocketfarm {

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
