// `exec`: a block in which each sample is one run of somebody else's program.
#pragma once

#include "system/args.h"
#include "device/environment.h"
#include "journal/journal.h"
#include "process/watchdog.h"

namespace pocketfarm {

// The number of timed samples. Ends at the first run that does not exit with 0, with `program_failed`. Libraries are looked
// for in the folder and its `lib` first.
Result<int> exec_program(const Args& args, const Environment& environment, Journal& journal, Watchdog& watchdog);

}  // namespace pocketfarm
