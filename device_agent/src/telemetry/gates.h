// What a block waits for, and what ends it early.
#pragma once

#include <string>

#include "readings.h"
#include "journal/journal.h"
#include "system/status.h"

namespace pocketfarm {

// Says when the phone has become too hot to go on.
class HeatGate {
 public:
  // `limit_dc`: tenths of a degree Celsius; 0: never too hot. Warns where there is a limit and no temperature can be read.
  HeatGate(Journal& journal, const std::string& sysroot, int limit_dc);
  // Whether skin or battery were hotter than the limit at some look. Looks every 100 ms at most.
  bool is_hot();
  // What was hot, and how hot; empty where nothing was.
  std::string what() const;

 private:
  Journal& journal_;
  const int limit_dc_;
  Battery battery_;
  Skin skin_;
  int64_t looked_ns_ = 0, seen_dc_ = 0;
  const char* hot_ = nullptr;  // what was hot
};

// Waits for the supply to be cut: until the battery's status says Discharging and, where the sign of the raw current while
// discharging is known (1 or -1; else 0), the current has it, twice in succession. `power_contaminated` after `wait_ms`; 0:
// does not look.
Status await_discharging(const std::string& sysroot, int wait_ms, int sign);

}  // namespace pocketfarm
