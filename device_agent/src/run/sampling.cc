#include "sampling.h"

#include <algorithm>
#include <string_view>

#include "system/clock.h"

namespace pocketfarm {
namespace {

constexpr int64_t kWritePauseNs = 250'000'000;  // short inferences are written together

const char* word_of(Step::Kind kind) {
  return kind == Step::Kind::copy ? "copy" : kind == Step::Kind::transfer ? "transfer" : kind == Step::Kind::swap_out ? "swap_out" : "swap_in";
}

}  // namespace

// Activations may share an input's bytes, so the inputs are written again before every run, untimed.
Result<int64_t> Sampling::sample(const char* phase, int index) {
  const int64_t runs = std::string_view(phase) == "timed" ? runs_ : 1;
  int64_t first_ns = 0, total_ns = 0;
  for (int64_t run = 0; run < runs; ++run) {
    if (auto error = inputs_.write(backend_)) return *error;
    const int64_t start_ns = boottime_ns();
    if (auto error = inferences_ == 1 ? backend_.run() : backend_.run_stream(inferences_, frames_)) return *error;
    total_ns += boottime_ns() - start_ns;
    if (run == 0) first_ns = start_ns;
  }
  const int64_t duration_ns = (total_ns + runs / 2) / runs;
  JsonObject told;
  told.set("index", index).set("phase", phase).set("start_ns", first_ns).set("duration_ns", duration_ns).set("inferences", inferences_);
  if (runs > 1) told.set("mean_of", runs);
  journal_.note("sample", told);
  runs_ = std::max(runs_, 1 + least_ns_ / std::max<int64_t>(duration_ns, 1));
  journal_.flush_after(kWritePauseNs);
  if (auto error = journal_.status()) return *error;
  return duration_ns;
}

Status Sampling::layer_passes(int count) {
  for (int pass = 0; pass < count; ++pass)
    if (auto error = layer_pass(pass)) return error;
  return kOk;
}

Status Sampling::layer_pass(int pass) {
  if (auto error = inputs_.write(backend_)) return error;
  std::vector<int64_t> step_ns(plan_.steps.size(), 0);
  if (auto error = backend_.run_profiled(0, plan_.steps.size(), step_ns)) return error;
  for (const Step& step : plan_.steps) {
    const bool dispatch = step.kind == Step::Kind::dispatch;
    journal_.write("layer", JsonObject()
                                .set("index", step.index)
                                .set("layer", step.layer)
                                .set("program", dispatch ? plan_.programs[step.program].id : word_of(step.kind))
                                .set("duration_ns", step_ns[step.index])
                                .set("repeat", pass));
  }
  return journal_.status();
}

}  // namespace pocketfarm
