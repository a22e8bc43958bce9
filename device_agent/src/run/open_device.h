// A plan brought onto its device: what `run` and `serve` share.
#pragma once

#include "backends/backend.h"
#include "device/environment.h"
#include "journal/journal.h"
#include "outputs.h"
#include "system/args.h"

namespace pocketfarm {

// Opens the plan's backend, says so by a `device` event, checks the device's limits, builds, allocates and writes the inputs.
// The backend is never destroyed: a driver may crash while it is taken down (seen on an NVIDIA H200), and the process
// ends anyway. Bundle and inputs outlive it.
Result<Backend*> open_device(const Bundle& bundle, const Inputs& inputs, const Args& args, const Environment& environment,
                             Journal& journal, SetupLog& log);

}  // namespace pocketfarm
