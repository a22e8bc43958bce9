// The battery gauge and clocks, sampled by one thread at absolute times: `power` events.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../files.h"
#include "../journal.h"

namespace pocketfarm {

// A node of /sys that is opened once and read again and again. Below a sysroot (virtual phones) files may be
// replaced at any moment, so there it is opened anew for each reading.
class Node {
 public:
  Node() = default;
  Node(std::string path, bool reopen);
  explicit operator bool() const { return static_cast<bool>(fd_); }
  std::string text();
  std::optional<int64_t> number();

 private:
  std::string path_;
  bool reopen_ = false;
  Descriptor fd_;
};

struct Gauge {
  Node current, voltage, temp, charge, status, gpu_clock;
  std::vector<Node> cpu_clocks;

  // Opens what can be read below `sysroot`/sys.
  static Gauge open(const std::string& sysroot);
  bool any() const { return current || voltage || gpu_clock || !cpu_clocks.empty(); }
  JsonObject read();
};

// Samples from construction to destruction.
class PowerSampler {
 public:
  PowerSampler(Journal& journal, const std::string& sysroot, int period_ms);
  ~PowerSampler();
  PowerSampler(const PowerSampler&) = delete;

 private:
  void sample();
  bool stopped_before(int64_t deadline_ns);

  Journal& journal_;
  Gauge gauge_;
  int64_t period_ns_;
  Descriptor stop_;
  std::thread thread_;
};

}  // namespace pocketfarm
