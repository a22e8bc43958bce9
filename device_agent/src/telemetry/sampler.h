// The sampling thread: `power` and `rails` events at absolute times.
#pragma once

#include <string>
#include <thread>

#include "journal/journal.h"
#include "system/files.h"
#include "readings.h"

namespace pocketfarm {

// Waits for absolute times of CLOCK_BOOTTIME, until it is told to stop.
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

// Samples from construction to destruction, and says then with a `sampler` event how it went. The first reading is
// done when the constructor returns, the last one is the destructor's.
class Sampler {
 public:
  Sampler(Journal& journal, const std::string& sysroot, int period_ms);
  ~Sampler();
  Sampler(const Sampler&) = delete;

 private:
  void sample();
  void read();
  int64_t next_deadline(int64_t due_ns);
  void report() const;

  Journal& journal_;
  Gauge gauge_;
  Rails rails_;
  const int64_t period_ns_;
  const bool pinned_;  // not where several virtual phones share the host: all would take the same core
  Timer timer_;
  int64_t readings_ = 0, missed_ = 0, longest_gap_ns_ = 0, read_at_ns_ = 0, rails_at_ns_ = 0;
  std::thread thread_;
};

}  // namespace pocketfarm
