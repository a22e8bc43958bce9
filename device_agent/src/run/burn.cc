#include "commands.h"

#include <atomic>
#include <optional>
#include <vector>

#include "system/clock.h"
#include "phase.h"
#include "journal/setup_log.h"
#include "device/slot.h"
#include "telemetry/sampler.h"
#include "system/thread.h"

namespace pocketfarm {
namespace {

constexpr int kRounds = 10'000;  // between two looks whether it is over

// Threads that are busy from construction to destruction.
class Load {
 public:
  explicit Load(int threads) {
    for (int i = 0; i < threads; ++i) threads_.push_back(start_thread([this] { work(); }));
  }
  ~Load() {
    over_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  Load(const Load&) = delete;

 private:
  void work() {
    volatile double kept = 1;  // so that the work is not optimised away
    double x = kept;
    while (!over_) {
      for (int i = 0; i < kRounds; ++i) x = x * 0.999 + 0.5;
      kept = x;
    }
  }

  std::atomic<bool> over_{false};
  std::vector<std::thread> threads_;
};

Status step(int threads, int step_ms, Journal& journal) {
  Phase phase(journal, threads == 0 ? "idle_before" : "load");
  {
    const Load load(threads);
    sleep_until(phase.start_ns() + int64_t{step_ms} * 1'000'000);
  }
  return phase.end();
}

}  // namespace

Result<int> burn(const Args& args, const Environment& environment, Journal& journal, Watchdog& watchdog) {
  SetupLog log(journal);
  Result<Descriptor> slot = environment.slot.empty() ? Descriptor() : take_slot(environment.slot, log);
  if (!slot) return slot.error();
  watchdog.arm(args.deadline_s);
  std::optional<Sampler> sampler;
  if (args.power_period_ms > 0) sampler.emplace(journal, environment.sysroot, args.power_period_ms);
  for (int threads : args.burn_threads)
    if (auto error = step(threads, args.step_ms, journal)) return *error;
  return static_cast<int>(args.burn_threads.size());
}

}  // namespace pocketfarm
