#include <algorithm>

#include "open.h"

namespace pocketfarm {

const std::vector<ApiEntry>& apis() {
  static const std::vector<ApiEntry> entries{
      {Api::opencl, open_opencl, probe_opencl},
      {Api::vulkan, open_vulkan, probe_vulkan},
      {Api::cpu, open_cpu, probe_cpu},
  };
  return entries;
}

Result<size_t> choose_device(const std::vector<std::string>& names, const std::string& wanted, Api api) {
  // One name may be a part of another (`RX 6800`, `RX 6800 XT`): a whole one goes first.
  const auto exact = std::find(names.begin(), names.end(), wanted);
  if (exact != names.end()) return static_cast<size_t>(exact - names.begin());
  std::string list;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].find(wanted) != std::string::npos) return i;
    list += (list.empty() ? "`" : ", `") + names[i] + "`";
  }
  if (names.empty()) return Error{Code::no_device, std::string(word(api)) + ": no device"};
  return Error{Code::no_device, std::string(word(api)) + ": no device's name contains `" + wanted + "`; there are: " + list};
}

}  // namespace pocketfarm
