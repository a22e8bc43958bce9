#include "commands.h"

#include "generation.h"
#include "open_device.h"
#include "outputs.h"
#include "sampling.h"
#include "schedule.h"
#include "training.h"
#include "journal/setup_log.h"
#include "device/slot.h"
#include "telemetry/memory.h"

namespace pocketfarm {
namespace {

Status make_folders(const Args& args) {
  for (const std::string& folder : {args.output_dir, args.cache_dir})
    if (!folder.empty())
      if (auto error = make_folder(folder)) return error;
  return kOk;
}

Status check_training(const Args& args, bool trains, bool generates) {
  if (trains && (args.warmup > 0 || args.warmup_stable > 0 || args.inferences > 1))
    return Error{Code::usage, "this plan trains, and every epoch of it counts: leave out --warmup, --warmup-stable and --inferences"};
  if (!trains && (args.epochs > 0 || args.checkpoint_every > 0))
    return Error{Code::usage, "--epochs and --checkpoint-every are for plans that train, and this plan has no stages"};
  if (!trains && !generates && (!args.checkpoint.empty() || !args.resume.empty()))
    return Error{Code::usage, "--checkpoint and --resume are for plans that train or generate text, and this plan has neither stages nor passes"};
  return kOk;
}

Status check_generation(const Args& args, bool generates) {
  if (generates && (args.tokens.empty() || args.inferences > 1))
    return Error{Code::usage, "this plan generates text: give --tokens FILE, and leave out --inferences"};
  if (!generates && (!args.tokens.empty() || args.generate > 0 || args.context > 0))
    return Error{Code::usage, "--tokens, --context and --generate are for plans that generate text, and this plan has no passes"};
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

  const auto opened = open_device(*bundle, *inputs, args, environment, journal, log);
  if (!opened) return opened.error();
  Backend& device = **opened;
  Outputs outputs(bundle->plan, inputs->frames());
  const bool trains = bundle->plan.trains(), generates = !bundle->plan.passes.empty();
  if (auto error = check_generation(args, generates)) return *error;
  if (auto error = check_training(args, trains, generates)) return *error;
  const bool streams = args.inferences > 1 && args.warmup + args.samples + args.load_ms > 0;
  const bool moved = streams && (inputs->frames() > 1 || bundle->plan.overwrites_inputs());
  const Frames frames{inputs->frames(), moved, inputs->items(), outputs.items()};
  if (streams)
    if (auto error = device.prepare_stream(frames, log)) return *error;
  Sampling sampling(bundle->plan, device, *inputs, frames, args.inferences, int64_t{args.least_sample_us} * 1000, journal);
  Training training(bundle->plan, device, *inputs, frames, journal, args);
  if (auto error = trains ? training.resume() : kOk) return *error;
  if (auto error = trains ? training.build(log) : kOk) return *error;
  auto generation = generates ? Generation::open(bundle->plan, device, journal, args) : Result<Generation>(Error{});
  if (generates && !generation) return generation.error();
  Samples& taken = generates ? static_cast<Samples&>(*generation) : trains ? training : sampling;
  const auto samples = run_block(args, environment, journal, taken);
  if (!samples) return samples.error();
  if (auto error = generates ? generation->store() : kOk) return *error;
  if (auto error = sampling.layer_passes(args.layer_passes)) return *error;
  journal.write("memory", memory_fields(device.device_bytes()));
  if (auto error = outputs.read(device, frames, log)) return *error;
  if (auto error = outputs.write(args.output_dir, journal)) return *error;
  if (auto error = journal.status()) return *error;
  return Ran{*samples, boottime_ns() - start_ns, suspended_ns(environment.sysroot) - slept_ns};
}

}  // namespace pocketfarm
