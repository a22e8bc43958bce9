#include "memory.h"

#include <cstdlib>
#include <string>

#include "system/files.h"

namespace pocketfarm {
namespace {

// `Name:   123 kB` of a /proc file, in bytes.
std::optional<int64_t> field_bytes(const std::string& text, const std::string& name) {
  const size_t at = ("\n" + text).find("\n" + name + ":");
  if (at == std::string::npos) return std::nullopt;
  return std::strtoll(text.c_str() + at + name.size() + 1, nullptr, 10) * 1024;
}

}  // namespace

JsonObject memory_fields(uint64_t device_bytes) {
  const std::string status = read_node("/proc/self/status");
  JsonObject fields;
  fields.set("device_bytes", device_bytes)
      .set("device_peak_bytes", device_bytes)
      .set("vm_hwm_bytes", field_bytes(status, "VmHWM").value_or(0))
      .set("vm_rss_bytes", field_bytes(status, "VmRSS").value_or(0));
  if (const auto pss = field_bytes(read_node("/proc/self/smaps_rollup"), "Pss")) fields.set("pss_bytes", *pss);
  return fields;
}

}  // namespace pocketfarm
