// A mixed plan as what it consists of: the plans of its two sides, its segments, and the transfers between them.
#pragma once

#include <vector>

#include "plan.h"

namespace pocketfarm {

// A run of steps of one side, with no transfer between them: a stage of its plan.
struct PlanSegment {
  bool beside = false;  // of the CPU's side
  size_t stage = 0;     // in the stages of the side's plan
};

// Moves a buffer's first bytes from the segment that is done with them to the one that reads them.
struct PlanTransfer {
  size_t step = 0;  // in the whole plan
  size_t source = 0, target = 0;  // buffers of the whole plan
  uint64_t bytes = 0;
  size_t from = 0, to = 0;  // segments
  bool first = false;       // nothing writes the source: it is read before its segment runs
};

struct PlanParts {
  Plan sides[2];  // its own API's, and the CPU's
  std::vector<size_t> buffers;           // of the whole plan -> in the plan of its side
  std::vector<size_t> steps[2];          // in the plan of a side -> of the whole plan
  std::vector<PlanSegment> segments;
  std::vector<PlanTransfer> transfers;   // in order
  std::vector<size_t> shared;            // buffers that several segments touch, but for those with content of the plan
  std::vector<size_t> inputs, outputs;   // port -> the segment that takes it in, or leaves it

  // `plan_invalid` where a transfer leads backwards or to nobody.
  static Result<PlanParts> of(const Plan& plan);
};

}  // namespace pocketfarm
