#include "watchdog.h"

#include <signal.h>

#include <algorithm>
#include <cstdio>

#include "system/clock.h"
#include "system/thread.h"

namespace pocketfarm {
namespace {

constexpr int64_t kLookNs = 50'000'000;  // a deadline is noticed within this time

sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

}  // namespace

void Watchdog::block_signals() {
  const sigset_t set = ending_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // a limit on files is an error (EFBIG), no death
}

Watchdog::Watchdog(std::function<void(const Error&)> fire) : fire_(std::move(fire)) {
  start_thread([this] { watch(); }).detach();
}

void Watchdog::arm(double deadline_s) {
  deadline_s_ = deadline_s;
  deadline_ns_ = boottime_ns() + static_cast<int64_t>(deadline_s * 1e9);
}

void Watchdog::watch() {
  const sigset_t set = ending_signals();
  while (true) {
    const int64_t left_ns = deadline_ns_ - boottime_ns();
    if (left_ns <= 0) {
      char text[100];
      std::snprintf(text, sizeof text, "not done after %g s, the deadline", deadline_s_.load());
      return fire_({Code::deadline, text});
    }
    const timespec wait{0, static_cast<long>(std::min(left_ns, kLookNs))};
    const int signal = ::sigtimedwait(&set, nullptr, &wait);
    if (signal > 0) return fire_({Code::cancelled, std::string("ended by ") + (signal == SIGTERM ? "SIGTERM" : "SIGINT")});
  }
}

}  // namespace pocketfarm
