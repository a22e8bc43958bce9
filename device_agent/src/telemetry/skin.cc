#include "readings.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace pocketfarm {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// Drivers print thousandths, tenths or whole degrees Celsius.
int64_t in_tenths(int64_t value) {
  const int64_t size = std::abs(value);
  return size >= 1000 ? value / 100 : size >= 100 ? value : value * 10;
}

}  // namespace

Skin Skin::open(const std::string& sysroot) {
  const std::string zones = sysroot + "/sys/class/thermal";
  Skin skin;
  for (const std::string& zone : entries(zones))
    if (!skin.temp_ && lower(read_node(zones + "/" + zone + "/type")).find("skin") != std::string::npos)
      skin.temp_ = first_readable({zones + "/" + zone + "/temp"});
  return skin;
}

std::optional<int64_t> Skin::tenths() const {
  const auto value = temp_.number();
  return value ? std::optional(in_tenths(*value)) : std::nullopt;
}

void Skin::read(JsonObject& fields) const {
  if (const auto value = tenths()) fields.set("skin_dc", *value);
}

}  // namespace pocketfarm
