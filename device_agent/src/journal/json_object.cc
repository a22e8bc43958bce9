#include "json_object.h"

#include <cmath>
#include <cstdio>

namespace pocketfarm {
namespace {

// Length of the well-formed UTF-8 sequence at `at`, 0 if there is none.
size_t sequence_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(at);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xc2 && lead < 0xe0 ? 2 : (lead & 0xf0) == 0xe0 ? 3 : lead >= 0xf0 && lead < 0xf5 ? 4 : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  const uint8_t second = byte(at + 1);
  const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool outside = (lead == 0xed && second >= 0xa0) || (lead == 0xf4 && second >= 0x90);
  return overlong || outside ? 0 : length;
}

void append_ascii(std::string& out, char c) {
  if (c == '"' || c == '\\') {
    (out += '\\') += c;
  } else if (static_cast<uint8_t>(c) < 0x20) {
    char escape[8];
    std::snprintf(escape, sizeof escape, "\\u%04x", c);
    out += escape;
  } else {
    out += c;
  }
}

template <typename Items, typename Write>
std::string array(const Items& items, Write write) {
  std::string out = "[";
  for (const auto& item : items) {
    if (out.size() > 1) out += ',';
    out += write(item);
  }
  return out + "]";
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return std::isfinite(value) ? text : "null";
}

}  // namespace

std::string json_quote(std::string_view text) {
  std::string out = "\"";
  for (size_t at = 0; at < text.size();) {
    const size_t length = sequence_length(text, at);
    if (length == 0) {
      out += "\xef\xbf\xbd", ++at;
    } else if (length == 1) {
      append_ascii(out, text[at++]);
    } else {
      out += text.substr(at, length), at += length;
    }
  }
  return out + "\"";
}

JsonObject& JsonObject::raw(const char* key, const std::string& value) {
  if (!members_.empty()) members_ += ',';
  members_ += json_quote(key) + ":" + value;
  return *this;
}

JsonObject& JsonObject::set(const char* key, std::string_view text) { return raw(key, json_quote(text)); }

JsonObject& JsonObject::set(const char* key, double value) { return raw(key, number(value)); }

JsonObject& JsonObject::set(const char* key, const std::vector<std::string>& texts) {
  return raw(key, array(texts, [](const std::string& s) { return json_quote(s); }));
}

JsonObject& JsonObject::set(const char* key, const std::vector<int64_t>& numbers) {
  return raw(key, array(numbers, [](int64_t n) { return std::to_string(n); }));
}

JsonObject& JsonObject::set(const char* key, const std::vector<double>& numbers) { return raw(key, array(numbers, number)); }

JsonObject& JsonObject::merge(const JsonObject& other) {
  if (!members_.empty() && !other.members_.empty()) members_ += ',';
  members_ += other.members_;
  return *this;
}

}  // namespace pocketfarm
