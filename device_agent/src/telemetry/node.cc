#include "readings.h"

#include <errno.h>
#include <fcntl.h>

#include <cstdlib>

namespace pocketfarm {
namespace {

constexpr size_t kPageBytes = 4096;

}  // namespace

Node::Node(const std::string& path) : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}

std::string Node::text() const {
  char buffer[kPageBytes];
  if (!fd_) return "";
  const auto got = read_some(fd_, buffer, sizeof buffer, path_, 0);
  return got ? without_trailing_space({buffer, *got}) : "";
}

std::optional<int64_t> Node::number() const {
  const std::string value = text();
  char* end = nullptr;
  errno = 0;
  const int64_t number = std::strtoll(value.c_str(), &end, 10);
  if (end == value.c_str() || errno != 0) return std::nullopt;
  return number;
}

void Node::set(JsonObject& fields, const char* key) const {
  if (const auto value = number()) fields.set(key, *value);
}

Node first_readable(const std::vector<std::string>& paths) {
  for (const std::string& path : paths)
    if (Node node(path); node.number()) return node;
  return {};
}

Node first_open(const std::vector<std::string>& paths) {
  for (const std::string& path : paths)
    if (Node node(path); !node.text().empty()) return node;
  return {};
}

}  // namespace pocketfarm
