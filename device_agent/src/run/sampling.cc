#include "sampling.h"

#include "system/clock.h"

namespace pocketfarm {
namespace {

constexpr int64_t kWritePauseNs = 250'000'000;  // short inferences are written together

const char* word_of(Step::Kind kind) {
  return kind == Step::Kind::copy ? "copy" : kind == Step::Kind::transfer ? "transfer" : kind == Step::Kind::swap_out ? "swap_out" : "swap_in";
}

}  // namespace

// Activations may share an input's bytes, so the inputs are written again before every sample, untimed.
Result<int64_t> Sampling::sample(const char* phase, int index) {
  if (auto error = inputs_.write(backend_)) return *error;
  const int64_t start_ns = boottime_ns();
  if (auto error = inferences_ == 1 ? backend_.run() : backend_.run_stream(inferences_, frames_)) return *error;
  const int64_t duration_ns = boottime_ns() - start_ns;
  journal_.note("sample", JsonObject()
                              .set("index", index)
                              .set("phase", phase)
                              .set("start_ns", start_ns)
                              .set("duration_ns", duration_ns)
                              .set("inferences", inferences_));
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
