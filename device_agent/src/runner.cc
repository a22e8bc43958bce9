#include "runner.h"

#include <optional>

#include "backends/backend.h"
#include "outputs.h"
#include "setup_log.h"
#include "slot.h"
#include "telemetry/memory.h"
#include "telemetry/power.h"

namespace pocketfarm {
namespace {

Result<std::unique_ptr<Backend>> open_backend(const Plan& plan, const Args& args, const Environment& environment,
                                              SetupLog& log) {
  if (!environment.offers(plan.api))
    return Error{Code::unsupported, std::string("the plan is for ") + word(plan.api) + ", and this device offers only " +
                                        environment.apis + " (POCKETFARM_APIS)"};
  for (const ApiEntry& entry : apis())
    if (entry.api == plan.api) return entry.open({environment, args.device, args.threads, plan.needs.fp16, args.cache_dir}, log);
  return Error{Code::internal, "no backend"};
}

void announce(Journal& journal, const Backend& backend, const Plan& plan) {
  journal.write("device", JsonObject()
                              .set("facts", backend.facts().json())
                              .set("precision", word(plan.precision))
                              .set("plan", plan.hash)
                              .set("threads", backend.threads()));
}

// Executes inferences and reports each.
class Sampling {
 public:
  Sampling(const Plan& plan, Backend& backend, const Inputs& inputs, Journal& journal)
      : plan_(plan), backend_(backend), inputs_(inputs), journal_(journal) {}

  Status samples(const char* phase, int count) {
    for (int i = 0; i < count; ++i)
      if (auto error = sample(phase, i)) return error;
    return kOk;
  }

  Status layer_passes(int count) {
    for (int pass = 0; pass < count; ++pass)
      if (auto error = layer_pass(pass)) return error;
    return kOk;
  }

 private:
  // Activations may share an input's bytes, so the inputs are written again before every inference, untimed.
  Status sample(const char* phase, int index) {
    if (auto error = inputs_.write(backend_)) return error;
    const int64_t start_ns = boottime_ns();
    if (auto error = backend_.run()) return error;
    const int64_t duration_ns = boottime_ns() - start_ns;
    journal_.write("sample", JsonObject()
                                 .set("index", index)
                                 .set("phase", phase)
                                 .set("start_ns", start_ns)
                                 .set("duration_ns", duration_ns));
    return journal_.status();
  }

  Status layer_pass(int pass) {
    if (auto error = inputs_.write(backend_)) return error;
    std::vector<int64_t> leaf_ns(plan_.leaves, 0);
    if (auto error = backend_.run_profiled(leaf_ns)) return error;
    report(plan_.steps, leaf_ns, pass);
    return journal_.status();
  }

  void report(const std::vector<Step>& steps, const std::vector<int64_t>& leaf_ns, int pass) {
    for (const Step& step : steps) {
      report(step.steps, leaf_ns, pass);
      if (step.kind == Step::Kind::repeat) continue;
      const bool dispatch = step.kind == Step::Kind::dispatch;
      journal_.write("layer", JsonObject()
                                  .set("index", step.index)
                                  .set("layer", step.layer)
                                  .set("program", dispatch ? plan_.programs[step.program].id : word_of(step.kind))
                                  .set("duration_ns", leaf_ns[step.leaf])
                                  .set("repeat", pass));
    }
  }

  static const char* word_of(Step::Kind kind) {
    return kind == Step::Kind::copy ? "copy" : kind == Step::Kind::swap_out ? "swap_out" : "swap_in";
  }

  const Plan& plan_;
  Backend& backend_;
  const Inputs& inputs_;
  Journal& journal_;
};

Status measure(Sampling& sampling, const Args& args, const Environment& environment, Journal& journal) {
  std::optional<PowerSampler> power;
  if (args.power_period_ms > 0) power.emplace(journal, environment.sysroot, args.power_period_ms);
  if (auto error = sampling.samples("warmup", args.warmup)) return error;
  if (auto error = sampling.samples("timed", args.samples)) return error;
  power.reset();
  return sampling.layer_passes(args.layer_passes);
}

Status load(const Bundle& bundle, const Inputs& inputs, Backend& backend, SetupLog& log) {
  if (auto error = check_limits(bundle.plan, backend.facts())) return error;
  if (auto error = backend.prepare(bundle, log)) return error;
  const int64_t start_ns = boottime_ns();
  if (auto error = inputs.write(backend)) return error;
  log.record("input", start_ns, "", false, inputs.bytes());
  return kOk;
}

Status make_folders(const Args& args) {
  for (const std::string& folder : {args.output_dir, args.cache_dir})
    if (!folder.empty())
      if (auto error = make_folder(folder)) return error;
  return kOk;
}

}  // namespace

Result<Ran> run_plan(const Args& args, const Environment& environment, Journal& journal, Watchdog& watchdog) {
  const int64_t start_ns = boottime_ns();
  SetupLog log(journal);
  auto bundle = Bundle::read(args.plan);
  if (!bundle) return bundle.error();
  auto inputs = Inputs::open(bundle->plan, args.inputs);
  if (!inputs) return inputs.error();
  if (auto error = make_folders(args)) return *error;
  Result<Descriptor> slot = environment.slot.empty() ? Descriptor() : take_slot(environment.slot, log);
  if (!slot) return slot.error();
  watchdog.arm(args.deadline_s);

  auto backend = open_backend(bundle->plan, args, environment, log);
  if (!backend) return backend.error();
  announce(journal, **backend, bundle->plan);
  if (auto error = load(*bundle, *inputs, **backend, log)) return *error;
  Sampling sampling(bundle->plan, **backend, *inputs, journal);
  if (auto error = measure(sampling, args, environment, journal)) return *error;
  journal.write("memory", memory_fields((*backend)->device_bytes()));
  if (auto error = write_outputs(bundle->plan, **backend, args.output_dir, journal, log)) return *error;
  if (auto error = journal.status()) return *error;
  return Ran{args.samples, boottime_ns() - start_ns};
}

}  // namespace pocketfarm
