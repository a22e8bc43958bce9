#include "request.h"

#include <nlohmann/json.hpp>

namespace pocketfarm {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMostHoldNs = int64_t{3600} * 1'000'000'000;
constexpr int64_t kMostCount = 100'000;
constexpr int64_t kMostTokens = 1 << 20;

Error bad(const std::string& line, const std::string& what) {
  return {Code::usage, "a request is {\"id\": N, \"network\": NAME, \"count\": N}, {\"id\": N, \"network\": NAME, \"prompt\": N, "
                       "\"generate\": N} or {\"id\": N, \"hold_ns\": N}, each with or without \"deadline_ns\"; " + what + ": " + line.substr(0, 200)};
}

struct Field {
  const char* name;
  int64_t* target;
  int64_t min, max;
};

}  // namespace

Result<Request> parse_request(const std::string& line) {
  Request request;
  const Field fields[] = {{"id", &request.id, 0, INT64_MAX},
                          {"count", &request.count, 1, kMostCount},
                          {"prompt", &request.prompt, 1, kMostTokens},
                          {"generate", &request.generate, 1, kMostTokens},
                          {"hold_ns", &request.hold_ns, 0, kMostHoldNs},
                          {"deadline_ns", &request.deadline_ns, 0, INT64_MAX}};
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return bad(line, "got");
  for (const auto& [key, value] : json.items()) {
    if (key == "network" && value.is_string()) {
      request.network = value.get<std::string>();
      continue;
    }
    const auto field = std::find_if(std::begin(fields), std::end(fields), [&key = key](const Field& f) { return key == f.name; });
    if (field == std::end(fields)) return bad(line, "`" + key + "` is not understood in");
    if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) ||
        value.get<int64_t>() < field->min || value.get<int64_t>() > field->max)
      return bad(line, "`" + key + "` is a whole number from " + std::to_string(field->min) + " to " +
                           std::to_string(field->max) + " in");
    *field->target = value.get<int64_t>();
  }
  if (!json.contains("id")) return bad(line, "`id` is missing in");
  if (json.contains("network") == json.contains("hold_ns")) return bad(line, "give either `network` or `hold_ns` in");
  return request;
}

}  // namespace pocketfarm
