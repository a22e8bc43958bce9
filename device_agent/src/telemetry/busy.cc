#include "busy.h"

#include <algorithm>
#include <cstdio>

#include "system/clock.h"

namespace pocketfarm {
namespace {

constexpr int64_t kPeriodNs = 100'000'000;

// utime + stime of /proc/self/stat; the name in parentheses may hold anything.
std::optional<int64_t> own_ticks(const std::string& stat) {
  const size_t name_end = stat.rfind(')');
  long long user = 0, system = 0;
  if (name_end == std::string::npos) return std::nullopt;
  const char* format = ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld";
  if (std::sscanf(stat.c_str() + name_end, format, &user, &system) != 2) return std::nullopt;
  return user + system;
}

}  // namespace

Busy Busy::open(const std::string& sysroot) {
  Busy busy;
  busy.all_ = first_open({sysroot + "/proc/stat", "/proc/stat"});
  busy.own_ = Node("/proc/self/stat");
  busy.before_ = busy.now();
  return busy;
}

std::optional<Busy::Ticks> Busy::now() const {
  long long user = 0, nice = 0, system = 0, idle = 0, io = 0, irq = 0, soft = 0, steal = 0;
  const int got = std::sscanf(all_.text().c_str(), "cpu %lld %lld %lld %lld %lld %lld %lld %lld", &user, &nice, &system,
                              &idle, &io, &irq, &soft, &steal);
  const auto own = own_ticks(own_.text());
  if (got < 4 || !own) return std::nullopt;
  const int64_t busy = user + nice + system + irq + soft + steal;
  return Ticks{boottime_ns(), busy + idle + io, busy, *own};
}

void Busy::read(JsonObject& fields) {
  if (before_ && boottime_ns() - before_->t_ns < kPeriodNs) return;
  const auto now = this->now();
  if (now && before_ && now->total == before_->total) return;  // a virtual phone's may stand still for a while
  if (now && before_ && now->total > before_->total) {
    const auto share = [&](int64_t ticks) {
      return std::clamp(static_cast<double>(ticks) / static_cast<double>(now->total - before_->total), 0.0, 1.0);
    };
    fields.set("cpu_busy", share(now->busy - before_->busy));
    fields.set("own_busy", share(now->own - before_->own));
  }
  before_ = now;
}

}  // namespace pocketfarm
