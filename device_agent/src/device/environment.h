// What the process is told by its environment and finds out about its machine; read once, in main.
#pragma once

#include <cstdint>
#include <string>

#include "facts.h"

namespace pocketfarm {

inline constexpr const char* kAgentVersion = "0.1.0";

struct Environment {
  std::string slot;     // POCKETFARM_SLOT: lock file by which runs on one host take turns
  std::string sysroot;  // POCKETFARM_SYSROOT: prefix of /sys and /system
  std::string apis;     // POCKETFARM_APIS: comma-separated; empty: all
  std::string cpu_isa;  // POCKETFARM_CPU_ISA: instruction set of the CPU backend; empty: the best
  std::string kernel_limits;  // POCKETFARM_KERNEL_LIMITS: `conv_tiled=64,matvec=32`, work-groups that OpenCL refuses beyond

  std::string swap_queue;  // POCKETFARM_SWAP_QUEUE: `shared`: swaps in submissions of their own to the one queue (Vulkan)

  std::string launch;  // POCKETFARM_LAUNCH: `single` steps, or `recorded` ones in command buffers (OpenCL); empty: as suits the device

  static Environment read();
  bool offers(Api api) const;
  uint64_t kernel_limit(const std::string& kernel) const;  // 0: none
};

const char* abi();
int online_cores();
int all_cores();  // those too that the phone has switched off for now
uint64_t memory_bytes();
// ro.build.fingerprint on Android; kernel release and version elsewhere.
std::string build_fingerprint();

}  // namespace pocketfarm
