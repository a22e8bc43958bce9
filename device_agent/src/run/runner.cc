#include "runner.h"

#include "device/affinity.h"
#include "backends/backend.h"
#include "outputs.h"
#include "sampling.h"
#include "schedule.h"
#include "journal/setup_log.h"
#include "device/slot.h"
#include "telemetry/memory.h"

namespace pocketfarm {
namespace {

Result<std::unique_ptr<Backend>> open_backend(const Plan& plan, const Args& args, const Environment& environment,
                                              SetupLog& log) {
  if (!environment.offers(plan.api))
    return Error{Code::unsupported, std::string("the plan is for ") + word(plan.api) + ", and this device offers only " +
                                        environment.apis + " (POCKETFARM_APIS)"};
  if (plan.api != Api::cpu && (args.cpu.per_call || args.cpu.pinned || args.cpu.pipeline != CpuUse::Pipeline::none))
    return Error{Code::usage, std::string("--threads-per-call, --pin-threads and --pipeline are the CPU backend's, and the "
                                          "plan is for ") + word(plan.api)};
  for (const ApiEntry& entry : apis())
    if (entry.api == plan.api) return entry.open({environment, args.device, args.cpu, plan.needs.fp16, args.cache_dir}, log);
  return Error{Code::internal, "no backend"};
}

void announce(Journal& journal, const Backend& backend, const Plan& plan) {
  journal.write("device", JsonObject()
                              .set("facts", backend.facts().json())
                              .set("precision", word(plan.precision))
                              .set("plan", plan.hash)
                              .set("threads", backend.threads())
                              .set("cpus", allowed_cpus()));
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
  auto inputs = Inputs::open(bundle->plan, args.inputs, args.inferences > 1);
  if (!inputs) return inputs.error();
  if (auto error = make_folders(args)) return *error;
  Result<Descriptor> slot = environment.slot.empty() ? Descriptor() : take_slot(environment.slot, log);
  if (!slot) return slot.error();
  watchdog.arm(args.deadline_s);
  const int64_t slept_ns = suspended_ns(environment.sysroot);

  auto backend = open_backend(bundle->plan, args, environment, log);
  if (!backend) return backend.error();
  // Never destroyed: a driver may crash while it is taken down (seen on an NVIDIA H200), and the process ends anyway.
  Backend& device = *backend->release();
  announce(journal, device, bundle->plan);
  if (auto error = load(*bundle, *inputs, device, log)) return *error;
  Outputs outputs(bundle->plan, inputs->frames());
  const bool streams = args.inferences > 1 && args.warmup + args.samples + args.load_ms > 0;
  const bool moved = streams && (inputs->frames() > 1 || bundle->plan.overwrites_inputs());
  const Frames frames{inputs->frames(), moved, inputs->items(), outputs.items()};
  if (streams)
    if (auto error = device.prepare_stream(frames, log)) return *error;
  Sampling sampling(bundle->plan, device, *inputs, frames, args.inferences, journal);
  const auto samples = run_block(args, environment, journal, sampling);
  if (!samples) return samples.error();
  if (auto error = sampling.layer_passes(args.layer_passes)) return *error;
  journal.write("memory", memory_fields(device.device_bytes()));
  if (auto error = outputs.read(device, frames, log)) return *error;
  if (auto error = outputs.write(args.output_dir, journal)) return *error;
  if (auto error = journal.status()) return *error;
  return Ran{*samples, boottime_ns() - start_ns, suspended_ns(environment.sysroot) - slept_ns};
}

}  // namespace pocketfarm
