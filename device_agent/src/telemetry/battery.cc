#include "readings.h"

namespace pocketfarm {
namespace {

// The supply of type Battery that has a live current node; else any battery.
std::string battery_folder(const std::string& supplies) {
  std::string found;
  for (const std::string& name : entries(supplies)) {
    const std::string folder = supplies + "/" + name;
    if (read_node(folder + "/type") != "Battery") continue;
    if (!read_node(folder + "/current_now").empty()) return folder;
    if (found.empty()) found = folder;
  }
  return found;
}

}  // namespace

Battery Battery::open(const std::string& sysroot) {
  const std::string folder = battery_folder(sysroot + "/sys/class/power_supply");
  if (folder.empty()) return {};
  return {first_readable({folder + "/current_now", folder + "/current_avg"}),
          first_readable({folder + "/voltage_now"}),
          first_readable({folder + "/temp"}),
          first_readable({folder + "/charge_counter", folder + "/charge_now"}),
          Node(folder + "/status")};
}

void Battery::read(JsonObject& fields) const {
  current.set(fields, "current_ua");
  voltage.set(fields, "voltage_uv");
  temp.set(fields, "temp_dc");
  charge.set(fields, "charge_uah");
  fields.set("status", status.text());
}

}  // namespace pocketfarm
