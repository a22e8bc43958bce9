// A lock file by which runs on one host take turns.
#pragma once

#include <string>

#include "system/files.h"
#include "journal/setup_log.h"
#include "system/status.h"

namespace pocketfarm {

// Waits for the file's lock and records the wait as the `slot` step; held until the descriptor closes.
Result<Descriptor> take_slot(const std::string& path, SetupLog& log);
// The same without a `setup` event.
Result<Descriptor> take_slot(const std::string& path);

}  // namespace pocketfarm
