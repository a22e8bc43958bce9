// Which steps must wait for earlier ones: ranges read and written since the last barrier.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace pocketfarm::vulkan {

struct Range {
  uint64_t place;  // number of an allocation
  uint64_t begin, end;
  bool written;
};

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
    return std::any_of(pending_.begin(), pending_.end(), [&](const Range& other) {
      return other.place == access.place && (other.written || access.written) && other.begin < access.end &&
             access.begin < other.end;
    });
  }

  std::vector<Range> pending_;
};

}  // namespace pocketfarm::vulkan
