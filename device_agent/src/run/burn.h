// `burn`: steps of processor load, by which a phone's gauge is calibrated.
#pragma once

#include "system/args.h"
#include "device/environment.h"
#include "journal/journal.h"
#include "system/status.h"
#include "process/watchdog.h"

namespace pocketfarm {

// Writes every event but the last: a `phase` per step (idle_before without load, load otherwise); the number of steps.
Result<int> burn(const Args& args, const Environment& environment, Journal& journal, Watchdog& watchdog);

}  // namespace pocketfarm
