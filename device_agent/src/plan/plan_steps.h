// The steps of plan.json.
#pragma once

#include <vector>

#include "system/json_reader.h"
#include "plan.h"
#include "plan_names.h"

namespace pocketfarm {

// Adds the steps to a plan that has its programs and buffers. Throws PlanFault.
void parse_steps(const Reader& json, const Names& programs, const Names& buffers, Plan& plan);

}  // namespace pocketfarm
