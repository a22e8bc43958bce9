// The programs of plan.json.
#pragma once

#include "system/json_reader.h"
#include "plan.h"

namespace pocketfarm {

// Throws PlanFault: a program without a part for the plan's API, a file that the plan does not list, numbers out of range.
Program parse_program(const Reader& json, const Plan& plan);
// Whether a program or pool is the CPU backend's in a plan of another API.
bool parse_side(const Reader& json, Api api);
// Three numbers of 1 to `max`.
Extent parse_extent(const Reader& json, uint32_t max);

}  // namespace pocketfarm
