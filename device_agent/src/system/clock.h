// CLOCK_BOOTTIME: counts on while the phone sleeps; every time in an event is on this clock.
#pragma once

#include <cstdint>
#include <string>

namespace pocketfarm {

int64_t boottime_ns();
// Time since boot during which the system was suspended. A virtual phone, whose kernel is its host's, tells its own time
// in /proc/suspended_ns below `sysroot`.
int64_t suspended_ns(const std::string& sysroot);
void sleep_until(int64_t deadline_ns);

}  // namespace pocketfarm
