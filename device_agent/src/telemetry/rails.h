// On-device power monitor: energy counters of rails.
#pragma once

#include "node.h"

namespace pocketfarm {

class Rails {
 public:
  // The IIO devices whose name ends with -odpm and whose counters are readable.
  static Rails open(const std::string& sysroot);
  explicit operator bool() const { return !monitors_.empty(); }
  // Fields of a `rails` event.
  JsonObject read() const;

 private:
  struct Monitor {
    std::string name;
    Node energy;
  };
  std::vector<Monitor> monitors_;
};

}  // namespace pocketfarm
