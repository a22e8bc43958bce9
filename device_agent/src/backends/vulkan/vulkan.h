// The Vulkan backend.
#pragma once

#include "backends/backend.h"

namespace pocketfarm {

Result<std::unique_ptr<Backend>> open_vulkan(const BackendRequest& request, SetupLog& log);
Result<std::vector<ApiFacts>> probe_vulkan(const Environment& environment);

}  // namespace pocketfarm
