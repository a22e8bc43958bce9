// `follow`: reads another run's journal, and waits for its end without looking again and again.
#pragma once

#include <cstdint>
#include <string>

#include "system/status.h"

namespace pocketfarm {

// Waits until the journal's writer has ended, at most `wait_ms`, then writes the file's bytes from `offset` on to
// standard output. True where it has ended: its lock on the journal goes with it, however it ended.
Result<bool> follow_journal(const std::string& path, int64_t offset, int wait_ms);

}  // namespace pocketfarm
