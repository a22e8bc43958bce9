#include "training.h"

#include "checkpoint.h"
#include "system/clock.h"

namespace pocketfarm {

Status Training::resume() {
  if (!args_.resume.empty())
    if (auto error = read_checkpoint(args_.resume, plan_, backend_)) return error;
  return find_place();
}

// The counters on the device say how far it is.
Status Training::find_place() {
  for (stage_ = 0; stage_ < plan_.stages.size(); ++stage_) {
    int32_t counted = 0;
    if (auto error = backend_.read(plan_.buffers[stage().counter], &counted, sizeof counted)) return error;
    if (counted < 0 || counted > stage().epochs * stage().batches || counted % stage().batches != 0)
      return Error{Code::usage, "stage `" + stage().name + "`: " + std::to_string(counted) + " batches are done, which is not between two of its " +
                                    std::to_string(stage().epochs) + " epochs of " + std::to_string(stage().batches)};
    epoch_ = counted / stage().batches;
    if (epoch_ < stage().epochs) return kOk;
  }
  return kOk;
}

Status Training::build(SetupLog& log) {
  if (finished()) return kOk;
  const int64_t start_ns = boottime_ns();
  const auto kept = read_variables(plan_, backend_);
  if (!kept) return kept.error();
  for (size_t i = stage_; i < plan_.stages.size(); ++i)
    if (auto error = backend_.run_batches(plan_.stages[i], 1)) return error;
  if (auto error = write_variables(*kept, plan_, backend_)) return error;
  log.record("build", start_ns, "a batch of each stage, put back");
  return kOk;
}

bool Training::finished() const {
  return stage_ == plan_.stages.size() || (args_.epochs > 0 && done_ == args_.epochs);
}

Result<int64_t> Training::sample(const char* phase, int index) {
  const int64_t start_ns = boottime_ns();
  if (auto error = backend_.run_batches(stage(), stage().batches)) return *error;
  const int64_t duration_ns = boottime_ns() - start_ns;
  if (auto error = report(phase, index, start_ns, duration_ns)) return *error;
  ++done_;
  if (++epoch_ == stage().epochs) {
    ++stage_;
    epoch_ = 0;
  }
  const bool due = args_.checkpoint_every > 0 && done_ % args_.checkpoint_every == 0;
  if (!args_.checkpoint.empty() && (due || finished()))
    if (auto error = write_checkpoint(args_.checkpoint, plan_, backend_, journal_, "epochs", done_)) return *error;
  if (auto error = journal_.status()) return *error;
  return duration_ns;
}

Status Training::report(const char* phase, int index, int64_t start_ns, int64_t duration_ns) {
  float sums[2] = {0, 0};
  if (auto error = backend_.read(plan_.buffers[stage().report], sums, sizeof sums)) return error;
  const double samples = static_cast<double>(stage().samples);
  JsonObject line;
  line.set("index", index)
      .set("phase", phase)
      .set("start_ns", start_ns)
      .set("duration_ns", duration_ns)
      .set("stage", stage().name)
      .set("epoch", epoch_)
      .set("loss", sums[0] / samples);
  if (stage().classifies) line.set("error", sums[1] / samples);
  journal_.write("sample", line);  // at once: whoever watches waits for it
  return kOk;
}

}  // namespace pocketfarm
