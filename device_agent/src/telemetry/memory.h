// Memory of this process as the kernel counts it.
#pragma once

#include <cstdint>
#include <optional>

#include "journal/json_object.h"

namespace pocketfarm {

// The fields of a `memory` event; `device_bytes` is the backend's own count.
JsonObject memory_fields(uint64_t device_bytes);

}  // namespace pocketfarm
