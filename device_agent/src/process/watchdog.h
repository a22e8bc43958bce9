// Ends a run from outside: SIGTERM and SIGINT, and the deadline, also while a driver hangs.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "system/status.h"

namespace pocketfarm {

// A thread that waits for the signals and the deadline and calls `fire` once. It lives as long as the process.
class Watchdog {
 public:
  // Blocks the signals in this thread and those that it starts: call before any other thread exists.
  static void block_signals();
  // `fire` runs on the watchdog's thread and must end the process.
  explicit Watchdog(std::function<void(const Error&)> fire);
  Watchdog(const Watchdog&) = delete;

  // The deadline counts from now.
  void arm(double deadline_s);

 private:
  void watch();

  std::function<void(const Error&)> fire_;
  std::atomic<int64_t> deadline_ns_{INT64_MAX};
  std::atomic<double> deadline_s_{0};
};

}  // namespace pocketfarm
