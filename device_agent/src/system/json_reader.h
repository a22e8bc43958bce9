// Typed access to parsed JSON that knows its own path; used inside plan parsing only.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "status.h"

namespace pocketfarm {

// Thrown by Reader, caught by parse_plan: never leaves plan parsing.
struct PlanFault : std::runtime_error {
  PlanFault(Code fault, const std::string& message) : std::runtime_error(message), code(fault) {}
  Code code;
};

class Reader {
 public:
  Reader(const nlohmann::json& json, std::string path) : json_(json), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  [[noreturn]] void fail(const std::string& message, Code code = Code::plan_invalid) const {
    throw PlanFault(code, "plan.json: " + path_ + ": " + message);
  }
  // An object with no other members than these.
  void only(std::initializer_list<const char*> keys) const;
  bool has(const char* key) const { return json_.is_object() && json_.contains(key) && !json_.at(key).is_null(); }
  Reader at(const char* key) const;
  std::vector<Reader> items(size_t max = 1'000'000) const;
  std::vector<std::pair<std::string, Reader>> members() const;
  std::string text() const;
  std::string word(std::initializer_list<const char*> allowed) const;
  int64_t integer(int64_t min, int64_t max) const;
  // At most what the process can address, so that it fits a size_t: error code `limit`.
  uint64_t bytes(uint64_t min = 0) const;
  double number() const;
  bool flag() const;

  static constexpr int64_t kMaxBytes = int64_t{1} << 48;

 private:
  const nlohmann::json& json_;
  std::string path_;
};

}  // namespace pocketfarm
