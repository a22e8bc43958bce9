#include "facts.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "system/files.h"
#include "backends/cpu/gemm/kernel.h"
#include "backends/cpu/int8/kernel.h"

namespace pocketfarm::cpu {
namespace {

constexpr uint64_t kCacheLine = 64;

// Value of the first `key : value` line of /proc/cpuinfo; phones say `Hardware` where desktops say `model name`.
std::string cpuinfo(const std::string& text, const std::string& key) {
  const size_t at = ("\n" + text).find("\n" + key);
  const size_t colon = at == std::string::npos ? at : text.find(": ", at);
  if (colon == std::string::npos) return "";
  return text.substr(colon + 2, text.find('\n', colon) - colon - 2);
}

uint64_t clock_mhz(const Environment& environment, const std::string& info) {
  const std::string khz = read_node(environment.sysroot + "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
  if (!khz.empty()) return std::strtoull(khz.c_str(), nullptr, 10) / 1000;
  return static_cast<uint64_t>(std::strtod(cpuinfo(info, "cpu MHz").c_str(), nullptr));
}

}  // namespace

ApiFacts cpu_facts(const Environment& environment) {
  const std::string info = read_node("/proc/cpuinfo");
  ApiFacts facts;
  facts.api = Api::cpu;
  facts.version = kAgentVersion;
  facts.device_name = cpuinfo(info, "model name");
  if (facts.device_name.empty()) facts.device_name = cpuinfo(info, "Hardware");
  if (facts.device_name.empty()) facts.device_name = std::string(abi()) + " processor";
  facts.vendor = cpuinfo(info, "vendor_id");
  facts.driver = std::string("pocketfarm-agent ") + kAgentVersion + " " + gemm_kernel().name;
  facts.precisions = {Precision::fp32, Precision::relaxed, Precision::int8};
  facts.global_bytes = memory_bytes();
  facts.max_buffer_bytes = std::min<uint64_t>(facts.global_bytes, PTRDIFF_MAX);
  facts.compute_units = static_cast<uint64_t>(all_cores());
  facts.clock_mhz = clock_mhz(environment, info);
  facts.offset_alignment = kCacheLine;
  facts.unified_memory = true;
  facts.dot_product = int8_instruction();
  return facts;
}

}  // namespace pocketfarm::cpu
