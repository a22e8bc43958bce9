// When a warm-up is over.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace pocketfarm {

// The last five durations.
class Stability {
 public:
  void add(int64_t duration_ns) { last_[count_++ % last_.size()] = duration_ns; }
  // Largest less smallest, over the median; infinite of less than five.
  double spread() const {
    if (count_ < last_.size()) return 1e9;
    auto sorted = last_;
    std::sort(sorted.begin(), sorted.end());
    return static_cast<double>(sorted.back() - sorted.front()) / static_cast<double>(std::max<int64_t>(sorted[2], 1));
  }

 private:
  std::array<int64_t, 5> last_{};
  size_t count_ = 0;
};

}  // namespace pocketfarm
