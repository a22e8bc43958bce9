// Waits for the supply to be cut.
#pragma once

#include <string>

#include "system/status.h"

namespace pocketfarm {

// Until the battery's status says Discharging and, where the sign of the raw current while discharging is known (1 or
// -1; else 0), the current has it, twice in succession. `power_contaminated` after `wait_ms`; 0: does not look.
Status await_discharging(const std::string& sysroot, int wait_ms, int sign);

}  // namespace pocketfarm
