#include "args.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>

namespace pocketfarm {

const char* const kUsage =
    "usage: pocketfarm-agent probe [--journal FILE] [--deadline-s S] [--marker TEXT]\n"
    "       pocketfarm-agent run --plan DIR [--input NAME=FILE]... [--output-dir DIR] [--journal FILE] [--detach]\n"
    "                            [--warmup N] [--samples N] [--layer-passes N] [--threads N] [--power-period-ms N]\n"
    "                            [--deadline-s S] [--marker TEXT] [--cache-dir DIR] [--device SUBSTRING]\n"
    "       pocketfarm-agent stop --marker-prefix TEXT\n"
    "       pocketfarm-agent version\n";

namespace {

Error usage(const std::string& message) { return {Code::usage, message}; }

using Setter = std::function<Status(const std::string&)>;

Setter text(std::string& target) {
  return [&target](const std::string& value) -> Status {
    target = value;
    return kOk;
  };
}

Setter count(int& target, int min, int max) {
  return [&target, min, max](const std::string& value) -> Status {
    char* end = nullptr;
    errno = 0;
    const long number = std::strtol(value.c_str(), &end, 10);
    if (value.empty() || *end != '\0' || errno != 0 || number < min || number > max)
      return usage("expected a whole number from " + std::to_string(min) + " to " + std::to_string(max) + ", got `" +
                   value + "`");
    target = static_cast<int>(number);
    return kOk;
  };
}

Setter seconds(double& target) {
  return [&target](const std::string& value) -> Status {
    char* end = nullptr;
    const double number = std::strtod(value.c_str(), &end);
    if (value.empty() || *end != '\0' || !std::isfinite(number) || number <= 0 || number > 1e6)
      return usage("expected seconds above 0, at most 1000000, got `" + value + "`");
    target = number;
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

std::map<std::string, Setter> options_of(Args& args) {
  if (args.command == "probe")
    return {{"--journal", text(args.journal)}, {"--deadline-s", seconds(args.deadline_s)},
            {"--marker", text(args.marker)}};
  if (args.command == "stop") return {{"--marker-prefix", text(args.marker_prefix)}};
  if (args.command != "run") return {};
  return {{"--plan", text(args.plan)},
          {"--input", input(args.inputs)},
          {"--output-dir", text(args.output_dir)},
          {"--journal", text(args.journal)},
          {"--warmup", count(args.warmup, 0, 1'000'000)},
          {"--samples", count(args.samples, 0, 1'000'000)},
          {"--layer-passes", count(args.layer_passes, 0, 10'000)},
          {"--threads", count(args.threads, 0, 1024)},
          {"--power-period-ms", count(args.power_period_ms, 0, 3'600'000)},
          {"--deadline-s", seconds(args.deadline_s)},
          {"--marker", text(args.marker)},
          {"--cache-dir", text(args.cache_dir)},
          {"--device", text(args.device)}};
}

Status check(const Args& args) {
  if (args.command == "stop" && args.marker_prefix.empty())
    return usage("stop: --marker-prefix is needed and must not be empty");
  if (args.command != "run") return kOk;
  if (args.plan.empty()) return usage("run: --plan DIR is needed");
  if (args.detach && args.journal.empty()) return usage("run: --detach needs --journal FILE");
  if (args.warmup + args.samples + args.layer_passes == 0)
    return usage("run: --warmup, --samples and --layer-passes are all 0: nothing to run");
  return kOk;
}

}  // namespace

Result<Args> parse_args(int argc, char** argv) {
  Args args;
  args.command = argc > 1 ? argv[1] : "";
  if (args.command != "probe" && args.command != "run" && args.command != "stop" && args.command != "version")
    return usage("unknown command `" + args.command + "`; there are: probe, run, stop, version");
  const auto options = options_of(args);
  for (int i = 2; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--detach" && args.command == "run") {
      args.detach = true;
      continue;
    }
    const auto option = options.find(name);
    if (option == options.end()) return usage(args.command + ": unknown option `" + name + "`");
    if (i + 1 == argc) return usage(args.command + ": " + name + " needs a value");
    if (auto error = option->second(argv[++i])) return usage(args.command + ": " + name + ": " + error->message);
  }
  if (auto error = check(args)) return *error;
  return args;
}

}  // namespace pocketfarm
