// Values of command-line options: each setter checks a text and keeps it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cpu_use.h"
#include "status.h"

namespace pocketfarm {

inline Error usage(const std::string& message) { return {Code::usage, message}; }

// Error code `usage`, the message says what is allowed.
using Setter = std::function<Status(const std::string&)>;

Setter text(std::string& target);
Setter some_text(std::string& target);  // not empty
Setter count(int& target, int min, int max);
Setter counts(std::vector<int>& target, int min, int max, size_t most);  // N,N,...
Setter bytes(uint64_t& target);  // above 0
Setter seconds(double& target);
Setter share(double& target);  // above 0, at most 1
Setter one_of(CpuUse::Pipeline& target);
Setter sign(int& target);      // -1 or 1
Setter variable(std::vector<std::string>& target);  // NAME=VALUE
Setter input(std::vector<std::pair<std::string, std::string>>& target);  // NAME=FILE

}  // namespace pocketfarm
