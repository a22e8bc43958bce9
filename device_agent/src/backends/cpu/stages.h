// Which steps of a plan are a stage of the pipeline.
#pragma once

#include <string>
#include <vector>

#include "system/cpu_use.h"
#include "plan/plan.h"
#include "backends/cpu/threads/pipeline.h"

namespace pocketfarm::cpu {

// The way of a frame through the stages, for the pipeline that `use` names. `costs_ns` of each step decide where there
// is a choice. `usage` where there is no second stage.
Result<std::vector<Segment>> route_of(const CpuUse& use, const Plan& plan, const std::vector<int64_t>& costs_ns);
// Stages and the steps of each visit, from 0, e.g. `2 stages: 1(0-3) 2(4-8)`.
std::string describe(const std::vector<Segment>& route);

}  // namespace pocketfarm::cpu
