// What a plan's parts are called, while it is parsed.
#pragma once

#include <string>
#include <unordered_map>

#include "system/json_reader.h"

namespace pocketfarm {

// Indices of named parts; refuses a name that comes twice.
class Names {
 public:
  explicit Names(const char* what) : what_(what) {}

  void add(const Reader& id) {
    if (!index_.emplace(id.text(), index_.size()).second) id.fail(std::string("a second ") + what_ + " of this id");
  }
  size_t find(const Reader& id) const {
    const auto found = index_.find(id.text());
    if (found == index_.end()) id.fail(std::string("no ") + what_ + " `" + id.text() + "` in this plan");
    return found->second;
  }

 private:
  const char* what_;
  std::unordered_map<std::string, size_t> index_;
};

}  // namespace pocketfarm
