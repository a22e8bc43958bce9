#include "clock.h"

#include <time.h>

#include <cstdlib>

#include "files.h"

namespace pocketfarm {

namespace {

int64_t now_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

int64_t boottime_ns() { return now_ns(CLOCK_BOOTTIME); }

int64_t suspended_ns(const std::string& sysroot) {
  constexpr int kReadings = 16;  // the shortest is the one that nothing came between
  int64_t shortest = INT64_MAX, offset = 0;
  for (int i = 0; i < kReadings; ++i) {
    const int64_t before = now_ns(CLOCK_MONOTONIC), boot = boottime_ns(), after = now_ns(CLOCK_MONOTONIC);
    if (after - before >= shortest) continue;
    shortest = after - before;
    offset = boot - after + shortest / 2;
  }
  const std::string own = sysroot.empty() ? "" : read_node(sysroot + "/proc/suspended_ns");
  return offset + std::strtoll(own.c_str(), nullptr, 10);
}

void sleep_until(int64_t deadline_ns) {
  const timespec until{static_cast<time_t>(deadline_ns / 1'000'000'000),
                       static_cast<long>(deadline_ns % 1'000'000'000)};
  while (boottime_ns() < deadline_ns) ::clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &until, nullptr);
}

}  // namespace pocketfarm
