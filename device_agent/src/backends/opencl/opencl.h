// The OpenCL backend.
#pragma once

#include "backends/backend.h"

namespace pocketfarm {

Result<std::unique_ptr<Backend>> open_opencl(const BackendRequest& request, SetupLog& log);
Result<std::vector<ApiFacts>> probe_opencl(const Environment& environment);

}  // namespace pocketfarm
