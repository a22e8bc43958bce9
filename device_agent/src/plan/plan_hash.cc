#include "plan_parsing.h"

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "system/sha256.h"

namespace pocketfarm {
namespace {

// Shortest decimal that reads back as the same double, laid out as Python's repr does.
std::string python_float(double value) {
  char text[40];
  int precision = 0;
  do std::snprintf(text, sizeof text, "%.*e", precision, value);
  while (std::strtod(text, nullptr) != value && ++precision < 17);
  const std::string mantissa(text, std::string(text).find('e'));
  const int exponent = std::atoi(text + mantissa.size() + 1);
  if (exponent < -4 || exponent >= 16) {
    char suffix[16];
    std::snprintf(suffix, sizeof suffix, "e%c%02d", exponent < 0 ? '-' : '+', std::abs(exponent));
    return mantissa + suffix;
  }
  const int decimals = precision > exponent ? precision - exponent : 1;
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

void append(std::string& out, const nlohmann::json& value) {
  if (value.is_object() || value.is_array()) {
    out += value.is_object() ? '{' : '[';
    const char* comma = "";
    for (const auto& item : value.items()) {
      out += comma, comma = ",";
      if (value.is_object()) out += nlohmann::json(item.key()).dump(-1, ' ', true) + ":";
      append(out, item.value());
    }
    out += value.is_object() ? '}' : ']';
  } else {
    out += value.is_number_float() ? python_float(value.get<double>()) : value.dump(-1, ' ', true);
  }
}

}  // namespace

std::string plan_hash(const nlohmann::json& plan) {
  nlohmann::json body = plan;
  body.erase("options");  // what was asked for; the hash is that of what runs
  std::string text;
  append(text, body);
  return sha256_hex(text).substr(0, 16);
}

}  // namespace pocketfarm
