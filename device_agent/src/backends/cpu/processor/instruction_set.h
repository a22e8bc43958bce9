// Which of the sets of inner loops runs: the best that the processor has, or the one that the environment asks for.
#pragma once

#include <string>

#include "system/status.h"

namespace pocketfarm::cpu {

enum class InstructionSet { generic, avx2, avx512 };

InstructionSet instruction_set();
// `wanted`: generic, avx2 or avx512f; empty: the best. An error names those that this processor has.
Status choose_instruction_set(const std::string& wanted);

}  // namespace pocketfarm::cpu
