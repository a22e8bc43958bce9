// Memory of processes as the kernel counts it.
#pragma once

#include <cstdint>
#include <optional>

#include "journal/json_object.h"

namespace pocketfarm {

// The fields of a `memory` event; `device_bytes` is the backend's own count.
JsonObject memory_fields(uint64_t device_bytes);

// Proportional memory (PSS) of a process and those below it, as far as it may be read; none where the process's own, or
// who is below it, may not.
std::optional<int64_t> tree_pss_bytes(int pid);

}  // namespace pocketfarm
