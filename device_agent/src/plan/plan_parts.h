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
  size_t from = 0, to = 0;  // segments; not of a plan that trains, whose passes lead from the last to the first
  bool first = false;       // nothing writes the source: it is read before its segment runs
};

// What comes next in the plan's order.
struct PlanTurn {
  bool transfer = false;  // else a segment
  size_t index = 0;       // among the transfers, or the segments
  size_t step = 0;        // its first in the whole plan
};

struct PlanParts {
  Plan sides[2];  // its own API's, and the CPU's
  std::vector<size_t> buffers;           // of the whole plan -> in the plan of its side
  std::vector<size_t> steps[2];          // in the plan of a side -> of the whole plan
  std::vector<PlanSegment> segments;
  std::vector<PlanTransfer> transfers;   // in order
  std::vector<PlanTurn> turns;           // every segment is of one stage of a plan that trains
  std::vector<size_t> shared;            // buffers that several segments touch, but for those with content of the plan
  std::vector<size_t> inputs, outputs;   // port -> the segment that takes it in, or leaves it

  // `plan_invalid` where a transfer leads backwards or to nobody in a plan that does not train.
  static Result<PlanParts> of(const Plan& plan);
};

}  // namespace pocketfarm
