// Which steps must wait for earlier ones: ranges read and written since the last barrier.
#pragma once

#include <algorithm>
#include <vector>

#include "accesses.h"

namespace pocketfarm {

class Hazards {
 public:
  // True where a step with these accesses needs a barrier before it (write after read, read or write after write).
  bool add(const std::vector<Range>& accesses) {
    const bool clash = std::any_of(accesses.begin(), accesses.end(), [&](const Range& access) { return clashes(access); });
    if (clash) pending_.clear();
    pending_.insert(pending_.end(), accesses.begin(), accesses.end());
    return clash;
  }

 private:
  bool clashes(const Range& access) const {
    return std::any_of(pending_.begin(), pending_.end(), [&](const Range& other) { return other.clashes(access); });
  }

  std::vector<Range> pending_;
};

}  // namespace pocketfarm
