#include "open_device.h"

#include "backends/open.h"
#include "device/affinity.h"
#include "journal/setup_log.h"
#include "checkpoint.h"

namespace pocketfarm {
namespace {

Result<std::unique_ptr<Backend>> open_api(Api api, const BackendRequest& request, SetupLog& log) {
  for (const ApiEntry& entry : apis())
    if (entry.api == api) return entry.open(request, log);
  return Error{Code::internal, "no backend"};
}

Result<std::unique_ptr<Backend>> open_backend(const Plan& plan, const Args& args, const Environment& environment,
                                              SetupLog& log) {
  if (!environment.offers(plan.api))
    return Error{Code::unsupported, std::string("the plan is for ") + word(plan.api) + ", and this device offers only " +
                                        environment.apis + " (POCKETFARM_APIS)"};
  const bool mixed = plan.mixed(), across = args.cpu.pipeline == CpuUse::Pipeline::across;
  if (mixed && !across && args.cpu.pipeline != CpuUse::Pipeline::none)
    return Error{Code::usage, std::string("--pipeline ") + word(args.cpu.pipeline) + " is the CPU backend's alone, and the plan is on two APIs: use across"};
  if (plan.api != Api::cpu && !mixed && (args.cpu.per_call || args.cpu.pinned || args.cpu.pipeline != CpuUse::Pipeline::none))
    return Error{Code::usage, std::string("--threads-per-call, --pin-threads and --pipeline are the CPU backend's, and the "
                                          "plan is for ") + word(plan.api)};
  if (!mixed) return open_api(plan.api, {environment, args.device, args.cpu, plan.needs.fp16, args.cache_dir}, log);
  if (!environment.offers(Api::cpu))
    return Error{Code::unsupported, "the plan is partly for cpu, and this device offers only " + environment.apis + " (POCKETFARM_APIS)"};
  CpuUse beside = args.cpu;
  beside.pipeline = CpuUse::Pipeline::none;
  auto own = open_api(plan.api, {environment, args.device, beside, plan.needs.fp16, args.cache_dir}, log);
  auto cpu = own ? open_api(Api::cpu, {environment, "", beside, false, ""}, log) : own.error();
  if (!cpu) return cpu.error();
  return make_mixed(std::move(*own), std::move(*cpu), across);
}

void announce(Journal& journal, const Backend& backend, const Plan& plan) {
  journal.write("device", JsonObject()
                              .set("facts", backend.facts().json())
                              .set("precision", word(plan.precision))
                              .set("plan", plan.hash)
                              .set("threads", backend.threads())
                              .set("cpus", allowed_cpus()));
}

Status load(const Bundle& bundle, const Inputs& inputs, const MemoryLimit& limit, Backend& backend, SetupLog& log) {
  if (!bundle.plan.mixed())  // else each side has its own
    if (auto error = check_limits(bundle.plan, backend.facts())) return error;
  if (auto error = check_memory_limit(bundle.plan, limit)) return error;
  if (auto error = backend.prepare(bundle, log)) return error;
  if (auto error = clear_states(bundle.plan, backend)) return error;
  const int64_t start_ns = boottime_ns();
  if (auto error = inputs.write(backend)) return error;
  log.record("input", start_ns, "", false, inputs.bytes());
  return kOk;
}

}  // namespace

Result<Backend*> open_device(const Bundle& bundle, const Inputs& inputs, const Args& args, const Environment& environment,
                             Journal& journal, SetupLog& log) {
  auto backend = open_backend(bundle.plan, args, environment, log);
  if (!backend) return backend.error();
  if (args.create_per_frame)
    backend = make_anew(std::move(*backend), [&](SetupLog& again) { return open_backend(bundle.plan, args, environment, again); });
  Backend* device = backend->release();
  announce(journal, *device, bundle.plan);
  if (auto error = load(bundle, inputs, {args.memory_total, args.largest_object}, *device, log)) return *error;
  return device;
}

}  // namespace pocketfarm
