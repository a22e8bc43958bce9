// The cores that threads may use.
#pragma once

#include <string>
#include <vector>

#include "system/status.h"

namespace pocketfarm {

// Cores that this thread may use now, rising.
std::vector<int> allowed_cpus();
// How many cores this process may use, those among them that the phone has switched off for now.
int usable_cores();
// `0-3,6` -> cores, rising, each once. Error code `usage`.
Result<std::vector<int>> parse_cpus(const std::string& list);
// Binds this thread, and those that it starts, to the listed cores. `usage` for cores that do not exist or that the
// system does not let us use, after reading back; `device_error` for those that are switched off. Below a sysroot
// (virtual phones) the phone's cores are those of its own `present` node, and share the host's.
Status bind_cpus(const std::string& list, const std::string& sysroot);
// Some drivers let their threads run anywhere: binds every thread of the process that may leave this thread's cores.
void bind_strays();
// Binds this thread alone; the system may refuse.
bool pin_this_thread(int cpu);

}  // namespace pocketfarm
