// CLOCK_BOOTTIME: counts on while the phone sleeps; every time in an event is on this clock.
#pragma once

#include <cstdint>

namespace pocketfarm {

int64_t boottime_ns();
void sleep_until(int64_t deadline_ns);

}  // namespace pocketfarm
