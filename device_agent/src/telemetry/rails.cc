#include "readings.h"

#include <algorithm>
#include <cstdio>
#include <map>

namespace pocketfarm {
namespace {

bool is_monitor(const std::string& name) {
  constexpr char kEnd[] = "-odpm";
  constexpr size_t kLength = sizeof kEnd - 1;
  return name.size() > kLength && name.compare(name.size() - kLength, kLength, kEnd) == 0;
}

// `CH<N>(T=<ms>)[RAIL], <uWs>`
bool parse_channel(const std::string& line, std::string& rail, long long& energy_uws) {
  char name[128];
  if (std::sscanf(line.c_str(), "CH%*d(T=%*d)[%127[^]]], %lld", name, &energy_uws) != 2) return false;
  rail = name;
  return true;
}

}  // namespace

Rails Rails::open(const std::string& sysroot) {
  const std::string devices = sysroot + "/sys/bus/iio/devices";
  Rails rails;
  for (const std::string& device : entries(devices)) {
    const std::string folder = devices + "/" + device, name = read_node(folder + "/name");
    if (device.compare(0, 10, "iio:device") != 0 || !is_monitor(name)) continue;
    Node energy = first_open({folder + "/energy_value"});
    if (energy) rails.monitors_.push_back({name, std::move(energy)});
  }
  return rails;
}

JsonObject Rails::read() const {
  std::map<std::string, long long> counters;
  for (const Monitor& monitor : monitors_) {
    const std::string text = monitor.energy.text();
    std::string rail;
    long long energy_uws = 0;
    for (size_t at = 0, end = 0; at < text.size(); at = end + 1) {
      end = std::min(text.find('\n', at), text.size());
      if (parse_channel(text.substr(at, end - at), rail, energy_uws) && !counters.emplace(rail, energy_uws).second)
        counters[monitor.name + "/" + rail] = energy_uws;
    }
  }
  JsonObject energies;
  for (const auto& [rail, energy_uws] : counters) energies.set(rail.c_str(), energy_uws);
  return JsonObject().set("energy_uws", energies);
}

}  // namespace pocketfarm
