#include "clock.h"

#include <time.h>

namespace pocketfarm {

int64_t boottime_ns() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void sleep_until(int64_t deadline_ns) {
  const timespec until{static_cast<time_t>(deadline_ns / 1'000'000'000), static_cast<long>(deadline_ns % 1'000'000'000)};
  while (boottime_ns() < deadline_ns) ::clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &until, nullptr);
}

}  // namespace pocketfarm
