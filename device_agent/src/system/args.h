// The command line (device_agent/README.md).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cpu_use.h"
#include "status.h"

namespace pocketfarm {

struct Args {
  std::string command;  // probe, run, exec, serve, burn, follow, stop, version
  std::string plan;
  std::vector<std::pair<std::string, std::string>> plans;   // of `serve`: network, folder
  std::vector<std::pair<std::string, std::string>> inputs;  // port name (of `serve` network:port), file
  std::string output_dir;
  std::string journal;
  bool detach = false;
  int warmup = 0;
  double warmup_stable = 0;  // 0: exactly `warmup` inferences
  int samples = 1;
  int inferences = 1;  // of a sample, back to back
  int load_ms = 0;
  int least_sample_us = 0;  // shorter inferences of the load are told by the mean of several
  int stop_temp_dc = 0;  // tenths of a degree Celsius above which the load ends; 0: at none
  std::string tokens;  // of a plan that generates: file of whole numbers of 64 bits
  int context = 0;     // of them, those that are taken before the clock starts
  int generate = 0;    // tokens behind them
  int epochs = 0;  // of a plan that trains, at most; 0: all that it has
  std::string checkpoint;  // file of its variables, written every so many epochs and at the end
  int checkpoint_every = 0;
  std::string resume;  // such a file
  int idle_ms = 0;
  int await_discharging_ms = 0;  // 0: do not look
  int discharging_sign = 0;      // of the raw current; 0: not known
  int layer_passes = 0;
  CpuUse cpu;
  bool create_per_frame = false;  // context, programs and memory are made anew for each inference
  std::string cpus;  // empty: every core
  int power_period_ms = 0;
  uint64_t memory_total = 0;    // bytes that all device memory of `run` may take together; 0: the device's own
  uint64_t largest_object = 0;  // bytes of one allocation; 0: the device's own
  int memory_mib = 0;  // of all networks of `serve`; 0: the device's own
  double deadline_s = 600;
  std::string marker;
  std::string cache_dir;
  std::string device;
  std::vector<int> burn_threads;  // of each step
  int step_ms = 0;
  std::string marker_prefix;
  uint64_t offset = 0;  // of `follow`: bytes of the journal that are known
  int wait_ms = 0;
  std::vector<std::string> program;    // of `exec`, with its arguments
  std::vector<std::string> variables;  // NAME=VALUE
  std::string folder;                  // where it runs
};

extern const char* const kUsage;

// Error code `usage`, the message names the argument and what is allowed.
Result<Args> parse_args(int argc, char** argv);

}  // namespace pocketfarm
