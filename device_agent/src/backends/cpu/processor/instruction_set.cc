#include "instruction_set.h"

#include <vector>

namespace pocketfarm::cpu {
namespace {

struct Entry {
  InstructionSet set;
  const char* name;
};

// From the least to the best.
std::vector<Entry> available() {
  std::vector<Entry> out{{InstructionSet::generic, "generic"}};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) out.push_back({InstructionSet::avx2, "avx2"});
  if (__builtin_cpu_supports("avx512f")) out.push_back({InstructionSet::avx512, "avx512f"});
#endif
  return out;
}

InstructionSet& chosen() {
  static InstructionSet set = available().back().set;
  return set;
}

}  // namespace

InstructionSet instruction_set() { return chosen(); }

Status choose_instruction_set(const std::string& wanted) {
  if (wanted.empty()) return kOk;
  std::string names;
  for (const Entry& entry : available()) {
    if (wanted == entry.name) {
      chosen() = entry.set;
      return kOk;
    }
    (names += names.empty() ? "" : ", ") += entry.name;
  }
  return Error{Code::unsupported,
               "POCKETFARM_CPU_ISA is `" + wanted + "`; this processor has: " + names + "; leave it out for the best"};
}

}  // namespace pocketfarm::cpu
