// The course of a block: await discharging - idle - warm-up until stable - load - idle, sampled throughout.
#pragma once

#include "system/args.h"
#include "device/environment.h"
#include "journal/journal.h"
#include "samples.h"

namespace pocketfarm {

// Runs it, with a `phase` event at the end of each phase of which something was asked; the number of timed samples.
Result<int> run_block(const Args& args, const Environment& environment, Journal& journal, Samples& samples);

}  // namespace pocketfarm
