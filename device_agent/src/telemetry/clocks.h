// Clocks of graphics and processors, what the system allows them, and how busy the graphics are.
#pragma once

#include "node.h"

namespace pocketfarm {

class GpuClock {
 public:
  static GpuClock open(const std::string& sysroot);
  explicit operator bool() const { return static_cast<bool>(now_); }
  void read(JsonObject& fields) const;

 private:
  Node now_, cap_, percent_, ticks_;
};

// Cores whose clock is readable. Cores of one cluster share a node, which is read once.
class CpuClocks {
 public:
  static CpuClocks open(const std::string& sysroot);
  explicit operator bool() const { return !policies_.empty(); }
  void read(JsonObject& fields) const;

 private:
  struct Policy {
    std::string folder;
    Node now, cap;
  };
  std::vector<Policy> policies_;
  std::vector<size_t> policy_of_;  // by core
};

// The core for a thread that must not disturb: the last of the slowest among those that we may use.
int quiet_core();
// Those that we may use, the fastest first, those of one speed rising.
std::vector<int> fast_cores();

}  // namespace pocketfarm
