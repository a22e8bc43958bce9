// The loops of plan.json: stages of a training, passes of a generation.
#pragma once

#include "system/json_reader.h"
#include "plan.h"
#include "plan_names.h"

namespace pocketfarm {

// Adds the stages to a plan that has its steps and buffers. Throws PlanFault.
void parse_stages(const Reader& json, const Names& buffers, Plan& plan);
// The same of passes, with a stage for the steps of each.
void parse_generation(const Reader& json, const Names& buffers, Plan& plan);

}  // namespace pocketfarm
