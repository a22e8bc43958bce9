// What the processor offers.
#pragma once

#include "device/environment.h"
#include "device/facts.h"

namespace pocketfarm::cpu {

ApiFacts cpu_facts(const Environment& environment);

}  // namespace pocketfarm::cpu
