#include "json_reader.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace pocketfarm {
namespace {

std::string joined(std::initializer_list<const char*> words) {
  std::string out;
  for (const char* word : words) (out += out.empty() ? "" : ", ") += word;
  return out;
}

bool among(const std::string& value, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* word) { return value == word; });
}

}  // namespace

void Reader::only(std::initializer_list<const char*> keys) const {
  if (!json_.is_object()) fail("expected an object");
  for (const auto& member : json_.items())
    if (!among(member.key(), keys)) fail("unknown member `" + member.key() + "`; known: " + joined(keys));
}

Reader Reader::at(const char* key) const {
  if (!json_.is_object()) fail("expected an object");
  if (!json_.contains(key)) fail(std::string("`") + key + "` is missing");
  return {json_.at(key), path_ + "." + key};
}

std::vector<Reader> Reader::items(size_t max) const {
  if (!json_.is_array()) fail("expected an array");
  if (json_.size() > max)
    fail(std::to_string(json_.size()) + " elements; at most " + std::to_string(max) + " are accepted", Code::limit);
  std::vector<Reader> out;
  for (size_t i = 0; i < json_.size(); ++i) out.emplace_back(json_[i], path_ + "[" + std::to_string(i) + "]");
  return out;
}

std::vector<std::pair<std::string, Reader>> Reader::members() const {
  if (!json_.is_object()) fail("expected an object");
  std::vector<std::pair<std::string, Reader>> out;
  for (const auto& member : json_.items())
    out.emplace_back(member.key(), Reader(member.value(), path_ + "." + member.key()));
  return out;
}

std::string Reader::text() const {
  if (!json_.is_string()) fail("expected a string");
  return json_.get<std::string>();
}

std::string Reader::word(std::initializer_list<const char*> allowed) const {
  const std::string value = text();
  if (!among(value, allowed)) fail("`" + value + "` is none of: " + joined(allowed));
  return value;
}

int64_t Reader::integer(int64_t min, int64_t max) const {
  const auto range = [&] { return "expected a whole number from " + std::to_string(min) + " to " + std::to_string(max); };
  if (!json_.is_number_integer()) fail(range());
  const bool huge = json_.is_number_unsigned() && json_.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  const int64_t value = huge ? INT64_MAX : json_.get<int64_t>();
  if (huge || value < min || value > max) fail(range() + ", got " + json_.dump());
  return value;
}

uint64_t Reader::bytes(uint64_t min) const {
  const int64_t value = integer(static_cast<int64_t>(min), kMaxBytes);
  if (value > PTRDIFF_MAX)
    fail(std::to_string(value) + " is more than this agent can address, which is " + std::to_string(PTRDIFF_MAX) +
             " bytes; use the 64-bit agent",
         Code::limit);
  return static_cast<uint64_t>(value);
}

double Reader::number() const {
  if (!json_.is_number() || !std::isfinite(json_.get<double>())) fail("expected a finite number, got " + json_.dump());
  return json_.get<double>();
}

bool Reader::flag() const {
  if (!json_.is_boolean()) fail("expected true or false");
  return json_.get<bool>();
}

}  // namespace pocketfarm
