// Nodes of /sys and /proc: opened once, read again and again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "system/files.h"
#include "journal/json_object.h"

namespace pocketfarm {

class Node {
 public:
  Node() = default;
  explicit Node(const std::string& path);
  explicit operator bool() const { return static_cast<bool>(fd_); }
  // What it says now, at most a page, without the trailing white space; empty where it cannot be read.
  std::string text() const;
  // The whole number that it begins with.
  std::optional<int64_t> number() const;
  void set(JsonObject& fields, const char* key) const;

 private:
  std::string path_;
  Descriptor fd_;
};

// The first of these that holds a number; an empty node where there is none.
Node first_readable(const std::vector<std::string>& paths);
// The first of these that can be opened and says something.
Node first_open(const std::vector<std::string>& paths);

}  // namespace pocketfarm
