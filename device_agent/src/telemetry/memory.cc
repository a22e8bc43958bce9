#include "memory.h"

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "system/files.h"

namespace pocketfarm {
namespace {

// `Name:   123 kB` of a /proc file, in bytes.
std::optional<int64_t> field_bytes(const std::string& text, const std::string& name) {
  const size_t at = ("\n" + text).find("\n" + name + ":");
  if (at == std::string::npos) return std::nullopt;
  return std::strtoll(text.c_str() + at + name.size() + 1, nullptr, 10) * 1024;
}

constexpr size_t kMostProcesses = 256;

std::string node_of(int pid, const char* name) { return "/proc/" + std::to_string(pid) + "/" + name; }

std::optional<int64_t> pss_bytes(int pid) { return field_bytes(read_node(node_of(pid, "smaps_rollup")), "Pss"); }

}  // namespace

std::optional<int64_t> tree_pss_bytes(int pid) {
  std::vector<int> found = {pid};
  auto sum = pss_bytes(pid);
  for (size_t at = 0; sum && at < found.size(); ++at) {
    const std::string tasks = node_of(found[at], "task");
    for (const std::string& thread : entries(tasks)) {
      const auto below = read_bytes(tasks + "/" + thread + "/children");
      if (!below && at == 0) return std::nullopt;
      const char* rest = below ? below->c_str() : "";
      char* behind = nullptr;
      for (long child; found.size() < kMostProcesses && (child = std::strtol(rest, &behind, 10)) > 0; rest = behind) {
        found.push_back(static_cast<int>(child));
        *sum += pss_bytes(found.back()).value_or(0);  // it has ended meanwhile
      }
    }
  }
  return sum;
}

JsonObject memory_fields(uint64_t device_bytes) {
  const std::string status = read_node("/proc/self/status");
  JsonObject fields;
  fields.set("device_bytes", device_bytes)
      .set("device_peak_bytes", device_bytes)
      .set("vm_hwm_bytes", field_bytes(status, "VmHWM").value_or(0))
      .set("vm_rss_bytes", field_bytes(status, "VmRSS").value_or(0));
  if (const auto pss = pss_bytes(::getpid())) fields.set("pss_bytes", *pss);
  return fields;
}

}  // namespace pocketfarm
