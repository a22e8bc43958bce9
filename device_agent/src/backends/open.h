// Backends are opened: an API's own, those of a mixed plan, and one that is made with each inference.
#pragma once

#include <functional>

#include "backend.h"

namespace pocketfarm {

Result<std::unique_ptr<Backend>> open_cpu(const BackendRequest& request, SetupLog& log);
Result<std::unique_ptr<Backend>> open_opencl(const BackendRequest& request, SetupLog& log);
Result<std::unique_ptr<Backend>> open_vulkan(const BackendRequest& request, SetupLog& log);
Result<std::vector<ApiFacts>> probe_cpu(const Environment& environment);
Result<std::vector<ApiFacts>> probe_opencl(const Environment& environment);
Result<std::vector<ApiFacts>> probe_vulkan(const Environment& environment);

// Two backends at once: segments by turns, and transfers between them through host memory. `own`: of the plan's API; `cpu`:
// beside it. `across`: successive frames of a stream are on both at the same time.
std::unique_ptr<Backend> make_mixed(std::unique_ptr<Backend> own, std::unique_ptr<Backend> cpu, bool across);

using Opener = std::function<Result<std::unique_ptr<Backend>>(SetupLog& log)>;

// Made, and destroyed, with each inference: what study C compares "create once, use many times" with. `first`: what `open`
// made for the first time.
std::unique_ptr<Backend> make_anew(std::unique_ptr<Backend> first, Opener open);

}  // namespace pocketfarm
