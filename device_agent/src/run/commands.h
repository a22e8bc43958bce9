// Commands that write events, every one but the last.
#pragma once

#include "device/environment.h"
#include "journal/journal.h"
#include "process/watchdog.h"
#include "system/args.h"

namespace pocketfarm {

struct Ran {
  int samples = 0;
  int64_t run_ns = 0;  // whole run, from here to the last output
  int64_t suspended_ns = 0;  // since our turn came: time in which the system slept
};
// `run`: one plan on one device. The caller finishes the journal with the error, or with what `Ran` says.
Result<Ran> run_plan(const Args& args, const Environment& environment, Journal& journal, Watchdog& watchdog);

// `exec`: a block in which each sample is one run of somebody else's program. The number of timed samples. Ends at the first
// run that does not exit with 0, with `program_failed`. Libraries are looked for in the folder and its `lib` first.
Result<int> exec_program(const Args& args, const Environment& environment, Journal& journal, Watchdog& watchdog);

// `serve`: stays resident with plans loaded and warm, and answers requests from standard input until that ends; how many.
Result<int> serve(const Args& args, const Environment& environment, Journal& journal, Watchdog& watchdog);

// `burn`: steps of processor load, by which a phone's gauge is calibrated. Writes a `phase` event per step (idle_before
// without load, load otherwise); the number of steps.
Result<int> burn(const Args& args, const Environment& environment, Journal& journal, Watchdog& watchdog);

// `probe`: a `probe` event for each device of every API, a `warning` for each API that is offered but has none. How many
// devices there are.
int probe_devices(const Environment& environment, Journal& journal);

}  // namespace pocketfarm
