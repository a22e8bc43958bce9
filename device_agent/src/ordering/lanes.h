// A plan's swaps beside its other steps: two lanes, each in order, that wait for each other only where they must.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "plan/plan.h"

namespace pocketfarm {

inline bool is_swap(const Step& step) { return step.kind == Step::Kind::swap_in || step.kind == Step::Kind::swap_out; }

// What the lanes of a plan wait for.
struct Lanes {
  // Of each step, the step of the other lane that must have ended; what a step before it in its lane waits for is not
  // repeated.
  std::vector<std::optional<size_t>> wait;
  std::vector<bool> awaited;  // of each step: whether one of the other lane waits for it

  // Empty where the plan swaps nothing.
  static Lanes of(const Plan& plan);
  bool any() const { return !wait.empty(); }
};

}  // namespace pocketfarm
