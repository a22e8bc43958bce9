// Waits for absolute times of CLOCK_BOOTTIME, until it is told to stop.
#pragma once

#include <cstdint>

#include "system/files.h"

namespace pocketfarm {

class Timer {
 public:
  Timer();
  // From any thread: `wait_until` returns false from now on.
  void stop();
  bool wait_until(int64_t deadline_ns) const;

 private:
  Descriptor stop_;
  Descriptor alarm_;  // exact; poll's own timeout is late by a share of it. Absent in kernels before 3.15.
};

}  // namespace pocketfarm
