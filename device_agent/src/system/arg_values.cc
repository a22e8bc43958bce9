#include "arg_values.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <optional>

namespace pocketfarm {
namespace {

std::optional<int> whole(const std::string& value, int min, int max) {
  char* end = nullptr;
  errno = 0;
  const long number = std::strtol(value.c_str(), &end, 10);
  if (value.empty() || *end != '\0' || errno != 0 || number < min || number > max) return std::nullopt;
  return static_cast<int>(number);
}

// A number above 0, at most `max`.
Setter above_zero(double& target, double max, const char* expected) {
  return [&target, max, expected](const std::string& value) -> Status {
    char* end = nullptr;
    const double number = std::strtod(value.c_str(), &end);
    if (value.empty() || *end != '\0' || !std::isfinite(number) || number <= 0 || number > max)
      return usage(std::string("expected ") + expected + ", got `" + value + "`");
    target = number;
    return kOk;
  };
}

std::string range(int min, int max) { return "from " + std::to_string(min) + " to " + std::to_string(max); }

}  // namespace

Setter text(std::string& target) {
  return [&target](const std::string& value) -> Status {
    target = value;
    return kOk;
  };
}

Setter some_text(std::string& target) {
  return [&target](const std::string& value) -> Status {
    target = value;
    return value.empty() ? Status(usage("must not be empty")) : kOk;
  };
}

Setter count(int& target, int min, int max) {
  return [&target, min, max](const std::string& value) -> Status {
    const auto number = whole(value, min, max);
    if (!number) return usage("expected a whole number " + range(min, max) + ", got `" + value + "`");
    target = *number;
    return kOk;
  };
}

Setter bytes(uint64_t& target) {
  return [&target](const std::string& value) -> Status {
    const bool digits = !value.empty() && value.size() <= 18 && value.find_first_not_of("0123456789") == std::string::npos;
    const uint64_t number = digits ? std::strtoull(value.c_str(), nullptr, 10) : 0;
    if (number == 0) return usage("expected a number of bytes above 0, got `" + value + "`");
    target = number;
    return kOk;
  };
}

Setter counts(std::vector<int>& target, int min, int max, size_t most) {
  return [&target, min, max, most](const std::string& value) -> Status {
    target.clear();
    for (size_t at = 0; at <= value.size();) {
      const size_t end = std::min(value.find(',', at), value.size());
      const auto number = whole(value.substr(at, end - at), min, max);
      if (!number || target.size() == most)
        return usage("expected N,N,..., at most " + std::to_string(most) + " whole numbers " + range(min, max) +
                     ", got `" + value + "`");
      target.push_back(*number);
      at = end + 1;
    }
    return kOk;
  };
}

Setter seconds(double& target) { return above_zero(target, 1e6, "seconds above 0, at most 1000000"); }

Setter share(double& target) { return above_zero(target, 1, "a share above 0, at most 1"); }

Setter one_of(CpuUse::Pipeline& target) {
  return [&target](const std::string& value) -> Status {
    for (const auto each : {CpuUse::Pipeline::none, CpuUse::Pipeline::balanced, CpuUse::Pipeline::by_kind,
                            CpuUse::Pipeline::across})
      if (value == word(each)) {
        target = each;
        return kOk;
      }
    return usage("expected none, balanced, by_kind or across, got `" + value + "`");
  };
}

Setter sign(int& target) {
  return [&target](const std::string& value) -> Status {
    if (value != "1" && value != "-1") return usage("expected 1 or -1, got `" + value + "`");
    target = value == "1" ? 1 : -1;
    return kOk;
  };
}

Setter variable(std::vector<std::string>& target) {
  return [&target](const std::string& value) -> Status {
    if (const size_t equals = value.find('='); equals == std::string::npos || equals == 0)
      return usage("expected NAME=VALUE, got `" + value + "`");
    target.push_back(value);
    return kOk;
  };
}

Setter input(std::vector<std::pair<std::string, std::string>>& target) {
  return [&target](const std::string& value) -> Status {
    const size_t equals = value.find('=');
    if (equals == std::string::npos || equals == 0) return usage("expected NAME=FILE, got `" + value + "`");
    target.emplace_back(value.substr(0, equals), value.substr(equals + 1));
    return kOk;
  };
}

}  // namespace pocketfarm
