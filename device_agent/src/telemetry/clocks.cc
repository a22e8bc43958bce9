#include "readings.h"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>

#include "device/affinity.h"

namespace pocketfarm {
namespace {

constexpr size_t kMostCores = 64;

// Drivers print Hz, kHz or MHz; a graphics clock lies between 10 MHz and 10 GHz.
int64_t hertz(int64_t value) { return value < 100'000 ? value * 1'000'000 : value < 10'000'000 ? value * 1000 : value; }

void set_hertz(JsonObject& fields, const char* key, const Node& node) {
  if (const auto value = node.number()) fields.set(key, hertz(*value));
}

std::string cpufreq(const std::string& sysroot, size_t core) {
  return sysroot + "/sys/devices/system/cpu/cpu" + std::to_string(core) + "/cpufreq";
}

// The folder without symbolic links: the same for all cores of a cluster.
std::string real_path(const std::string& folder) {
  char path[PATH_MAX];
  return ::realpath(folder.c_str(), path) == nullptr ? "" : path;
}

int64_t highest_khz(int core) {
  return Node(cpufreq("", static_cast<size_t>(core)) + "/cpuinfo_max_freq").number().value_or(0);
}

}  // namespace

GpuClock GpuClock::open(const std::string& sysroot) {
  const std::string kgsl = sysroot + "/sys/class/kgsl/kgsl-3d0", mali = sysroot + "/sys/class/misc/mali0/device";
  GpuClock gpu;
  gpu.now_ = first_readable({kgsl + "/gpuclk", kgsl + "/devfreq/cur_freq", mali + "/cur_freq", mali + "/clock"});
  gpu.cap_ = first_readable({kgsl + "/devfreq/max_freq", kgsl + "/max_gpuclk", mali + "/scaling_max_freq",
                             mali + "/max_freq", mali + "/devfreq/max_freq", mali + "/max_clock"});
  gpu.percent_ = first_readable({kgsl + "/gpu_busy_percentage", mali + "/utilization"});
  if (!gpu.percent_) gpu.ticks_ = first_readable({kgsl + "/gpubusy"});
  return gpu;
}

void GpuClock::read(JsonObject& fields) const {
  set_hertz(fields, "gpu_hz", now_);
  set_hertz(fields, "gpu_cap_hz", cap_);
  if (const auto percent = percent_.number(); percent && *percent >= 0 && *percent <= 100)
    fields.set("gpu_busy", static_cast<double>(*percent) / 100);
  long long busy = 0, total = 0;
  if (ticks_ && std::sscanf(ticks_.text().c_str(), "%lld %lld", &busy, &total) == 2 && busy >= 0 && busy <= total)
    fields.set("gpu_busy", total == 0 ? 0.0 : static_cast<double>(busy) / static_cast<double>(total));
}

CpuClocks CpuClocks::open(const std::string& sysroot) {
  CpuClocks clocks;
  for (size_t core = 0; core < kMostCores; ++core) {
    const std::string folder = real_path(cpufreq(sysroot, core));
    if (folder.empty()) continue;
    size_t policy = 0;
    while (policy < clocks.policies_.size() && clocks.policies_[policy].folder != folder) ++policy;
    if (policy == clocks.policies_.size()) {
      Node now = first_readable({folder + "/scaling_cur_freq"});
      if (!now) continue;
      clocks.policies_.push_back({folder, std::move(now), first_readable({folder + "/scaling_max_freq"})});
    }
    clocks.policy_of_.push_back(policy);
  }
  return clocks;
}

void CpuClocks::read(JsonObject& fields) const {
  std::vector<int64_t> now, cap;
  for (const Policy& policy : policies_) {
    now.push_back(policy.now.number().value_or(0));
    if (const auto value = policy.cap.number()) cap.push_back(*value);
  }
  const auto by_core = [&](const std::vector<int64_t>& values) {
    std::vector<int64_t> out;
    for (size_t policy : policy_of_) out.push_back(values[policy]);
    return out;
  };
  fields.set("cpu_khz", by_core(now));
  if (cap.size() == now.size()) fields.set("cpu_cap_khz", by_core(cap));
}

int quiet_core() {
  int64_t least = INT64_MAX;
  int found = 0;
  for (int core : allowed_cpus()) {
    const int64_t khz = highest_khz(core);
    if (khz <= least) least = khz, found = core;
  }
  return found;
}

std::vector<int> fast_cores() {
  std::vector<std::pair<int64_t, int>> found;
  for (int core : allowed_cpus()) found.emplace_back(-highest_khz(core), core);
  std::sort(found.begin(), found.end());
  std::vector<int> cores;
  for (const auto& [khz, core] : found) cores.push_back(core);
  return cores;
}

}  // namespace pocketfarm
