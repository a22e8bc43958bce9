#include "readings.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "process/child.h"
#include "system/clock.h"

namespace pocketfarm {
namespace {

constexpr int64_t kPeriodNs = 100'000'000;

constexpr int kDeepest = 8;  // of a program's children

// The times of a /proc/<pid>/stat, with those of children that were waited for; the name in parentheses may hold anything.
std::optional<int64_t> ticks_of(const std::string& stat) {
  const size_t name_end = stat.rfind(')');
  long long user = 0, system = 0, children_user = 0, children_system = 0;
  if (name_end == std::string::npos) return std::nullopt;
  const char* format = ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld %lld %lld";
  if (std::sscanf(stat.c_str() + name_end, format, &user, &system, &children_user, &children_system) != 4) return std::nullopt;
  return user + system + children_user + children_system;
}

// Of a process and those that it has started, as far as the kernel lists them.
int64_t ticks_below(int pid, int depth) {
  const std::string folder = "/proc/" + std::to_string(pid);
  int64_t ticks = ticks_of(read_node(folder + "/stat")).value_or(0);
  if (depth == kDeepest) return ticks;
  for (const std::string& thread : entries(folder + "/task")) {
    const std::string children = read_node(folder + "/task/" + thread + "/children");
    char* end = nullptr;
    for (const char* at = children.c_str(); const long child = std::strtol(at, &end, 10); at = end)
      ticks += ticks_below(static_cast<int>(child), depth + 1);
  }
  return ticks;
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
  auto own = ticks_of(own_.text());
  if (const int child = child_pid(); own && child > 0) *own += ticks_below(child, 0);
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
