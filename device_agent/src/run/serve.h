// `serve`: stays resident with plans loaded and warm, and answers requests from standard input until that ends.
#pragma once

#include "device/environment.h"
#include "journal/journal.h"
#include "system/args.h"
#include "system/status.h"
#include "process/watchdog.h"

namespace pocketfarm {

// Writes every event but the last; how many requests were answered.
Result<int> serve(const Args& args, const Environment& environment, Journal& journal, Watchdog& watchdog);

}  // namespace pocketfarm
