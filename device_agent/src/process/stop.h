// `stop`: ends other agents by their marker.
#pragma once

#include <string>

namespace pocketfarm {

// Sends SIGTERM to every agent whose --marker starts with `prefix` and whose POCKETFARM_SYSROOT is `sysroot`, SIGKILL to
// those that are still there after three seconds. Returns how many there were.
int stop_agents(const std::string& prefix, const std::string& sysroot);

}  // namespace pocketfarm
