#include "schedule.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

#include "device/affinity.h"
#include "system/clock.h"
#include "phase.h"
#include "telemetry/gates.h"
#include "telemetry/sampler.h"

namespace pocketfarm {
namespace {

// The last five durations tell when a warm-up is over.
class Stability {
 public:
  void add(int64_t duration_ns) { last_[count_++ % last_.size()] = duration_ns; }
  // Largest less smallest, over the median; infinite of less than five.
  double spread() const {
    if (count_ < last_.size()) return 1e9;
    auto sorted = last_;
    std::sort(sorted.begin(), sorted.end());
    return static_cast<double>(sorted.back() - sorted.front()) / static_cast<double>(std::max<int64_t>(sorted[2], 1));
  }

 private:
  std::array<int64_t, 5> last_{};
  size_t count_ = 0;
};

constexpr int64_t kMs = 1'000'000;
constexpr int kMoreAtLeast = 30;  // inferences beyond the asked warm-up, or so many times it, until it must be stable
constexpr int kMoreTimes = 30;

Status idle(const char* name, int idle_ms, Journal& journal) {
  if (idle_ms == 0) return kOk;
  Phase phase(journal, name);
  sleep_until(phase.start_ns() + idle_ms * kMs);
  return phase.end();
}

void warn_not_warm(double spread, double share, int count, Journal& journal) {
  char text[160];
  std::snprintf(text, sizeof text, "after %d inferences of warm-up the last five differ by %.1f %%, more than %g %%",
                count, spread * 100, share * 100);
  journal.write("warning", JsonObject().set("code", "not_warm").set("message", text));
}

void warn_too_hot(const HeatGate& gate, const Phase& load, Journal& journal) {
  char text[60];
  std::snprintf(text, sizeof text, ": the load ended after %.1f s", static_cast<double>(boottime_ns() - load.start_ns()) / 1e9);
  journal.write("warning", JsonObject().set("code", "too_hot").set("message", gate.what() + text));
}

// At least `warmup` inferences; then more until they agree, where that is asked.
Status warm_up(const Args& args, Samples& samples, HeatGate& gate, Journal& journal) {
  const bool until_stable = args.warmup_stable > 0;
  if (args.warmup == 0 && !until_stable) return kOk;
  const int most = args.warmup + (until_stable ? std::max(kMoreAtLeast, kMoreTimes * args.warmup) : 0);
  Phase phase(journal, "warmup");
  Stability stability;
  int count = 0;
  while ((count < args.warmup || (count < most && stability.spread() > args.warmup_stable)) && !gate.is_hot()) {
    const auto duration_ns = samples.sample("warmup", count++);
    if (!duration_ns) return duration_ns.error();
    stability.add(*duration_ns);
  }
  if (auto error = phase.end()) return error;
  if (until_stable && stability.spread() > args.warmup_stable && !gate.is_hot())
    warn_not_warm(stability.spread(), args.warmup_stable, count, journal);
  return journal.status();
}

// Until both the number and the time are reached; of a plan that trains, until it has trained. Too hot, after one sample at least.
Result<int> load(const Args& args, Samples& samples, HeatGate& gate, Journal& journal) {
  if (!samples.trains() && args.samples == 0 && args.load_ms == 0) return 0;
  Phase phase(journal, "load");
  const int64_t until_ns = phase.start_ns() + args.load_ms * kMs;
  int count = 0;
  while ((samples.trains() ? !samples.finished() : count < args.samples || boottime_ns() < until_ns) && (count == 0 || !gate.is_hot()))
    if (const auto duration_ns = samples.sample("timed", count++); !duration_ns) return duration_ns.error();
  if (gate.is_hot()) warn_too_hot(gate, phase, journal);
  if (auto error = phase.end()) return *error;
  return count;
}

}  // namespace

Result<int> run_block(const Args& args, const Environment& environment, Journal& journal, Samples& samples) {
  if (auto error = await_discharging(environment.sysroot, args.await_discharging_ms, args.discharging_sign))
    return *error;
  std::optional<Sampler> sampler;
  if (args.power_period_ms > 0) sampler.emplace(journal, environment.sysroot, args.power_period_ms);
  HeatGate gate(journal, environment.sysroot, args.stop_temp_dc);
  samples.watch(gate);
  if (!args.cpus.empty()) bind_strays();
  if (auto error = idle("idle_before", args.idle_ms, journal)) return *error;
  if (auto error = warm_up(args, samples, gate, journal)) return *error;
  if (!args.cpus.empty()) bind_strays();  // threads that the first inferences started
  const auto count = load(args, samples, gate, journal);
  if (!count) return count.error();
  if (auto error = idle("idle_after", args.idle_ms, journal)) return *error;
  return count;
}

}  // namespace pocketfarm
