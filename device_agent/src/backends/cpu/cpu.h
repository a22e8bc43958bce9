// The CPU backend: built-in operations on threads.
#pragma once

#include "backends/backend.h"

namespace pocketfarm {

Result<std::unique_ptr<Backend>> open_cpu(const BackendRequest& request, SetupLog& log);
Result<std::vector<ApiFacts>> probe_cpu(const Environment& environment);

}  // namespace pocketfarm
