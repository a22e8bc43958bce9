#include "open_device.h"

#include "device/affinity.h"
#include "journal/setup_log.h"

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

Status load(const Bundle& bundle, const Inputs& inputs, const MemoryLimit& limit, Backend& backend, SetupLog& log) {
  if (auto error = check_limits(bundle.plan, backend.facts())) return error;
  if (auto error = check_memory_limit(bundle.plan, limit)) return error;
  if (auto error = backend.prepare(bundle, log)) return error;
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
  Backend* device = backend->release();
  announce(journal, *device, bundle.plan);
  if (auto error = load(bundle, inputs, {args.memory_total, args.largest_object}, *device, log)) return *error;
  return device;
}

}  // namespace pocketfarm
