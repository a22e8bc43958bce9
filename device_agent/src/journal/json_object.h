// Builds one flat-ish JSON object as text, keys in order of insertion; always valid UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace pocketfarm {

class JsonObject {
 public:
  JsonObject& set(const char* key, std::string_view text);
  JsonObject& set(const char* key, const char* text) { return set(key, std::string_view(text)); }
  JsonObject& set(const char* key, bool value) { return raw(key, value ? "true" : "false"); }
  template <typename T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
  JsonObject& set(const char* key, T value) { return raw(key, std::to_string(value)); }
  JsonObject& set(const char* key, double value);  // null where it is not finite
  JsonObject& set(const char* key, const JsonObject& object) { return raw(key, object.text()); }
  JsonObject& set(const char* key, const std::vector<std::string>& texts);
  JsonObject& set(const char* key, const std::vector<int64_t>& numbers);
  JsonObject& set(const char* key, const std::vector<double>& numbers);
  JsonObject& set(const char* key, const std::vector<int>& numbers) {
    return set(key, std::vector<int64_t>(numbers.begin(), numbers.end()));
  }
  // Appends the members of another object.
  JsonObject& merge(const JsonObject& other);

  std::string text() const { return "{" + members_ + "}"; }

 private:
  JsonObject& raw(const char* key, const std::string& value);

  std::string members_;
};

// A JSON string literal; bytes that are not UTF-8 become U+FFFD (a driver's strings are not to be trusted).
std::string json_quote(std::string_view text);

}  // namespace pocketfarm
