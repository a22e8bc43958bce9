// How busy the processors are, and how much of that is ours.
#pragma once

#include "node.h"

namespace pocketfarm {

class Busy {
 public:
  // Below a sysroot its own /proc/stat, where there is one.
  static Busy open(const std::string& sysroot);
  // Shares since the reading before.
  void read(JsonObject& fields);

 private:
  struct Ticks {
    int64_t total = 0, busy = 0, own = 0;
  };
  std::optional<Ticks> now() const;

  Node all_, own_;
  std::optional<Ticks> before_;
};

}  // namespace pocketfarm
