#include "kernels.h"

#include "backends/cpu/processor/instruction_set.h"

namespace pocketfarm::cpu {

const Nc16Kernels& nc16_kernels() {
#if defined(__x86_64__)
  if (instruction_set() == InstructionSet::avx512) return kNc16Avx512;
  if (instruction_set() == InstructionSet::avx2) return kNc16Avx2;
#endif
  return kNc16Generic;
}

}  // namespace pocketfarm::cpu
