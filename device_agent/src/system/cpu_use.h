// How the CPU backend uses threads and cores; chosen on the command line.
#pragma once

#include <string>

namespace pocketfarm {

struct CpuUse {
  enum class Pipeline { none, balanced, by_kind, across };

  int threads = 0;        // 0: every core
  bool per_call = false;  // threads start and end with each operation, instead of staying
  bool in_order = false;  // per call, and each starts when the one before has begun
  bool pinned = false;    // each thread, or stage, is bound to a core of its own
  Pipeline pipeline = Pipeline::none;
};

inline const char* word(CpuUse::Pipeline pipeline) {
  constexpr const char* kWords[] = {"none", "balanced", "by_kind", "across"};
  return kWords[static_cast<int>(pipeline)];
}

// E.g. `2 threads, pinned, pipeline balanced`.
inline std::string describe(const CpuUse& use) {
  return std::to_string(use.threads) + " threads" + (use.in_order ? " started per call, in order" : use.per_call ? " started per call" : "") +
         (use.pinned ? ", pinned" : "") +
         (use.pipeline == CpuUse::Pipeline::none ? "" : std::string(", pipeline ") + word(use.pipeline));
}

}  // namespace pocketfarm
