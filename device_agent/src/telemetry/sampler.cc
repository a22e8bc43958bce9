#include "sampler.h"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>

#include "device/affinity.h"
#include "system/clock.h"
#include "system/thread.h"

namespace pocketfarm {
namespace {

constexpr int64_t kRailsPeriodNs = 100'000'000;  // they say nothing new before
constexpr int64_t kWritePauseNs = 1'000'000'000;  // while nobody else writes
constexpr int kNice = 2;  // behind the load; more would make it late where every core is busy

int64_t own_processor_ns() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

}  // namespace

Sampler::Sampler(Journal& journal, const std::string& sysroot, int period_ms)
    : journal_(journal),
      gauge_(Gauge::open(sysroot)),
      rails_(Rails::open(sysroot)),
      period_ns_(int64_t{period_ms} * 1'000'000),
      pinned_(sysroot.empty()) {
  if (!gauge_.battery.current)
    journal.write("warning", JsonObject()
                                 .set("code", "no_power_gauge")
                                 .set("message", "no readable current_now of a battery below " + sysroot +
                                                     "/sys/class/power_supply: use an external meter"));
  read();
  thread_ = start_thread([this] { sample(); });
}

Sampler::~Sampler() {
  timer_.stop();
  thread_.join();
}

void Sampler::sample() {
  ::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, 0) + kNice);  // of this thread alone, on Linux
  if (pinned_) pin_this_thread(quiet_core());
  int64_t due_ns = read_at_ns_;
  while (timer_.wait_until(due_ns = next_deadline(due_ns))) read();
  read();
  report();
}

void Sampler::read() {
  const int64_t start_ns = boottime_ns();
  JsonObject fields = gauge_.read();
  journal_.note("power", fields.set("read_ns", boottime_ns() - start_ns), start_ns);
  if (readings_++ > 0) longest_gap_ns_ = std::max(longest_gap_ns_, start_ns - read_at_ns_);
  read_at_ns_ = start_ns;
  if (rails_ && start_ns - rails_at_ns_ >= kRailsPeriodNs) {
    rails_at_ns_ = boottime_ns();
    journal_.note("rails", rails_.read(), rails_at_ns_);
  }
  journal_.flush_after(kWritePauseNs);
}

// A deadline that has passed is left out, not made up for.
int64_t Sampler::next_deadline(int64_t due_ns) {
  const int64_t late_ns = boottime_ns() - due_ns;
  const int64_t periods = std::max<int64_t>(1, (late_ns + period_ns_ - 1) / period_ns_);
  missed_ += periods - 1;
  return due_ns + periods * period_ns_;
}

void Sampler::report() const {
  journal_.write("sampler", JsonObject()
                                .set("period_ns", period_ns_)
                                .set("readings", readings_)
                                .set("missed", missed_)
                                .set("longest_gap_ns", longest_gap_ns_)
                                .set("cpu_ns", own_processor_ns()));
}

}  // namespace pocketfarm
