#include "kernels.h"

#include "backends/cpu/processor/instruction_set.h"

namespace pocketfarm::cpu {

const ElementKernels& element_kernels() {
#if defined(__x86_64__)
  if (instruction_set() == InstructionSet::avx512) return kElementsAvx512;
  if (instruction_set() == InstructionSet::avx2) return kElementsAvx2;
#endif
  return kElementsGeneric;
}

}  // namespace pocketfarm::cpu
