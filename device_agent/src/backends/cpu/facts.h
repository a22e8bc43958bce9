// What the processor offers.
#pragma once

#include "../../environment.h"
#include "../../facts.h"

namespace pocketfarm::cpu {

ApiFacts cpu_facts(const Environment& environment);

}  // namespace pocketfarm::cpu
