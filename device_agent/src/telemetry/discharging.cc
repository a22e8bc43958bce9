#include "gates.h"

#include <algorithm>
#include <optional>

#include "system/clock.h"
#include "readings.h"

namespace pocketfarm {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kLookNs = 100 * kMs;
constexpr int kAgreeing = 2;

int sign_of(int64_t value) { return (value > 0) - (value < 0); }

// Remembers how often in succession the gauge agreed.
class Watch {
 public:
  Watch(const std::string& sysroot, int sign) : battery_(Battery::open(sysroot)), sign_(sign) {}

  bool discharging() {
    status_ = battery_.status.text();
    current_ = battery_.current.number();
    const bool agrees = sign_ == 0 || sign_of(current_.value_or(0)) == sign_;
    agreed_ = status_ == "Discharging" && agrees ? agreed_ + 1 : 0;
    return agreed_ >= kAgreeing;
  }
  std::string last() const {
    return "status `" + (status_.empty() ? "not readable" : status_) + "`, current " +
           (current_ ? std::to_string(*current_) : "not readable");
  }

 private:
  const Battery battery_;
  const int sign_;
  int agreed_ = 0;
  std::string status_;
  std::optional<int64_t> current_;
};

}  // namespace

Status await_discharging(const std::string& sysroot, int wait_ms, int sign) {
  if (wait_ms == 0) return kOk;
  Watch watch(sysroot, sign);
  const int64_t until_ns = boottime_ns() + wait_ms * kMs;
  while (!watch.discharging()) {
    const int64_t now_ns = boottime_ns();
    if (now_ns >= until_ns)
      return Error{Code::power_contaminated, "the battery was not discharging within " + std::to_string(wait_ms) +
                                                 " ms (" + watch.last() +
                                                 "): cut the supply (a switchable hub, or Wi-Fi adb)"};
    sleep_until(std::min(now_ns + kLookNs, until_ns));
  }
  return kOk;
}

}  // namespace pocketfarm
