// `probe`: every device of every API.
#pragma once

#include "device/environment.h"
#include "journal/journal.h"

namespace pocketfarm {

// A `probe` event for each device, a `warning` for each API that is offered but has none. Returns how many devices.
int probe_devices(const Environment& environment, Journal& journal);

}  // namespace pocketfarm
