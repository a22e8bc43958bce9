// Checks of a plan that concern several of its parts; each throws PlanFault at the Reader's path.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "system/json_reader.h"
#include "plan.h"

namespace pocketfarm {

// [offset, offset + bytes) lies within `size` bytes of `whole`.
void check_range(const Reader& at, const std::string& whole, uint64_t offset, uint64_t bytes, uint64_t size);
void check_arguments(const Reader& at, const Plan& plan, const Program& program,
                     const std::vector<Argument>& arguments);
// A copy stays within its buffers and does not overlap itself.
void check_copy(const Reader& at, const Plan& plan, const Step& copy);
// A step that moves data stays on one side of a mixed plan.
void check_side(const Reader& at, const Plan& plan, const Step& step);
// Every buffer is swapped out before it is swapped in.
void check_swaps(const Reader& at, const Plan& plan);

}  // namespace pocketfarm
