// The command line (device_agent/README.md).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "status.h"

namespace pocketfarm {

struct Args {
  std::string command;  // probe, run, stop, version
  std::string plan;
  std::vector<std::pair<std::string, std::string>> inputs;  // port name, file
  std::string output_dir;
  std::string journal;
  bool detach = false;
  int warmup = 0;
  int samples = 1;
  int layer_passes = 0;
  int threads = 0;  // 0: every core
  int power_period_ms = 0;
  double deadline_s = 600;
  std::string marker;
  std::string cache_dir;
  std::string device;
  std::string marker_prefix;
};

extern const char* const kUsage;

// Error code `usage`, the message names the argument and what is allowed.
Result<Args> parse_args(int argc, char** argv);

}  // namespace pocketfarm
