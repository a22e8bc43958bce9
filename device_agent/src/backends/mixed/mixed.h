// A plan on two backends at once: segments by turns, and transfers between them through host memory.
#pragma once

#include "backends/backend.h"

namespace pocketfarm {

// `own`: of the plan's API; `cpu`: beside it. `across`: successive frames of a stream are on both at the same time.
std::unique_ptr<Backend> make_mixed(std::unique_ptr<Backend> own, std::unique_ptr<Backend> cpu, bool across);

}  // namespace pocketfarm
