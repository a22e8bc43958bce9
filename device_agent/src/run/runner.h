// `run`: one plan on one device, from the first event to the result.
#pragma once

#include "system/args.h"
#include "device/environment.h"
#include "journal/journal.h"
#include "system/status.h"
#include "process/watchdog.h"

namespace pocketfarm {

// Writes every event but the last; the caller finishes the journal with the error, or with what `Ran` says.
struct Ran {
  int samples = 0;
  int64_t run_ns = 0;  // whole run, from here to the last output
  int64_t suspended_ns = 0;  // since our turn came: time in which the system slept
};
Result<Ran> run_plan(const Args& args, const Environment& environment, Journal& journal, Watchdog& watchdog);

}  // namespace pocketfarm
