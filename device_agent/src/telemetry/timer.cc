#include "sampler.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "system/clock.h"

namespace pocketfarm {
namespace {

timespec time_of(int64_t ns) {
  return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

}  // namespace

Timer::Timer() : stop_(::eventfd(0, EFD_CLOEXEC)), alarm_(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC)) {}

void Timer::stop() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof one);
}

bool Timer::wait_until(int64_t deadline_ns) const {
  const itimerspec alarm{{0, 0}, time_of(deadline_ns)};
  const bool exact = alarm_ && ::timerfd_settime(alarm_.get(), TFD_TIMER_ABSTIME, &alarm, nullptr) == 0;
  pollfd waits[]{{stop_.get(), POLLIN, 0}, {alarm_.get(), POLLIN, 0}};
  while (true) {
    const timespec left = time_of(std::max<int64_t>(0, deadline_ns - boottime_ns()));
    ::ppoll(waits, exact ? 2 : 1, exact ? nullptr : &left, nullptr);
    if (waits[0].revents != 0) return false;
    if (boottime_ns() >= deadline_ns) return true;
  }
}

}  // namespace pocketfarm
