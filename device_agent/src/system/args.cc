#include "args.h"

#include <algorithm>
#include <map>

#include "arg_values.h"

namespace pocketfarm {

const char* const kUsage =
    "usage: pocketfarm-agent probe [--journal FILE] [--deadline-s S] [--marker TEXT]\n"
    "       pocketfarm-agent run --plan DIR [--input NAME=FILE]... [--output-dir DIR] [--journal FILE] [--detach]\n"
    "                            [--await-discharging-ms N] [--discharging-sign 1|-1] [--idle-ms N]\n"
    "                            [--warmup N] [--warmup-stable SHARE] [--samples N] [--inferences N] [--load-ms N]\n"
    "                            [--least-sample-us N] [--stop-temp-dc N] [--layer-passes N]\n"
    "                            [--tokens FILE] [--context N] [--generate N]\n"
    "                            [--epochs N] [--checkpoint FILE] [--checkpoint-every N] [--resume FILE]\n"
    "                            [--threads N] [--threads-per-call] [--threads-in-order] [--pin-threads]\n"
    "                            [--pipeline none|balanced|by_kind|across]\n"
    "                            [--cpus LIST] [--power-period-ms N] [--deadline-s S] [--marker TEXT]\n"
    "                            [--cache-dir DIR] [--device SUBSTRING]\n"
    "                            [--memory-total BYTES] [--largest-object BYTES] [--create-per-frame]\n"
    "       pocketfarm-agent exec --folder DIR [--variable NAME=VALUE]... [--journal FILE] [--detach]\n"
    "                            [--await-discharging-ms N] [--discharging-sign 1|-1] [--idle-ms N]\n"
    "                            [--warmup N] [--warmup-stable SHARE] [--samples N] [--load-ms N]\n"
    "                            [--stop-temp-dc N] [--cpus LIST] [--power-period-ms N] [--deadline-s S] [--marker TEXT]\n"
    "                            -- PROGRAM [ARGUMENT]...\n"
    "       pocketfarm-agent serve [--plan NETWORK=DIR]... [--input NETWORK:PORT=FILE]... [--warmup N] [--threads N]\n"
    "                            [--threads-per-call] [--threads-in-order] [--pin-threads] [--cpus LIST] [--power-period-ms N] [--journal FILE]\n"
    "                            [--deadline-s S] [--marker TEXT] [--cache-dir DIR] [--device SUBSTRING]\n"
    "                            [--memory-mib N] [--stop-temp-dc N]\n"
    "       pocketfarm-agent burn --steps THREADS,THREADS,... --step-ms N [--power-period-ms N] [--cpus LIST]\n"
    "                            [--journal FILE] [--detach] [--deadline-s S] [--marker TEXT]\n"
    "       pocketfarm-agent follow --journal FILE --wait-ms N [--offset BYTES]\n"
    "       pocketfarm-agent stop --marker-prefix TEXT\n"
    "       pocketfarm-agent version\n";

namespace {

constexpr int kDayMs = 86'400'000;
constexpr int kHourMs = 3'600'000;

using Options = std::map<std::string, Setter>;

Options merged(Options some, const Options& more) {
  some.insert(more.begin(), more.end());
  return some;
}

Options every_measurement(Args& args) {
  return {{"--journal", text(args.journal)},
          {"--deadline-s", seconds(args.deadline_s)},
          {"--marker", text(args.marker)}};
}

Options load(Args& args) {
  return {{"--cpus", some_text(args.cpus)}, {"--power-period-ms", count(args.power_period_ms, 0, kHourMs)}};
}

Options block(Args& args) {
  return {{"--await-discharging-ms", count(args.await_discharging_ms, 0, kDayMs)},
          {"--discharging-sign", sign(args.discharging_sign)},
          {"--idle-ms", count(args.idle_ms, 0, kDayMs)},
          {"--warmup", count(args.warmup, 0, 1'000'000)},
          {"--warmup-stable", share(args.warmup_stable)},
          {"--samples", count(args.samples, 0, 1'000'000)},
          {"--load-ms", count(args.load_ms, 0, kDayMs)},
          {"--stop-temp-dc", count(args.stop_temp_dc, 0, 2000)}};
}

Options exec(Args& args) { return {{"--folder", some_text(args.folder)}, {"--variable", variable(args.variables)}}; }

Options run(Args& args) {
  return {{"--plan", text(args.plan)},
          {"--input", input(args.inputs)},
          {"--output-dir", text(args.output_dir)},
          {"--memory-total", bytes(args.memory_total)},
          {"--largest-object", bytes(args.largest_object)},
          {"--inferences", count(args.inferences, 1, 100'000)},
          {"--least-sample-us", count(args.least_sample_us, 0, kHourMs)},
          {"--layer-passes", count(args.layer_passes, 0, 10'000)},
          {"--tokens", some_text(args.tokens)},
          {"--context", count(args.context, 0, 1'000'000'000)},
          {"--generate", count(args.generate, 1, 1'000'000)},
          {"--epochs", count(args.epochs, 0, 1'000'000)},
          {"--checkpoint", some_text(args.checkpoint)},
          {"--checkpoint-every", count(args.checkpoint_every, 1, 1'000'000)},
          {"--resume", some_text(args.resume)},
          {"--threads", count(args.cpu.threads, 0, 1024)},
          {"--pipeline", one_of(args.cpu.pipeline)},
          {"--cache-dir", text(args.cache_dir)},
          {"--device", text(args.device)}};
}

Options serve(Args& args) {
  return {{"--plan", input(args.plans)},
          {"--input", input(args.inputs)},
          {"--warmup", count(args.warmup, 0, 1'000'000)},
          {"--threads", count(args.cpu.threads, 0, 1024)},
          {"--memory-mib", count(args.memory_mib, 1, 1 << 30)},
          {"--stop-temp-dc", count(args.stop_temp_dc, 0, 2000)},
          {"--cache-dir", text(args.cache_dir)},
          {"--device", text(args.device)}};
}

std::map<std::string, bool*> flags_of(Args& args) {
  if (args.command == "burn" || args.command == "exec") return {{"--detach", &args.detach}};
  std::map<std::string, bool*> threads{{"--threads-per-call", &args.cpu.per_call},
                                      {"--threads-in-order", &args.cpu.in_order},
                                      {"--pin-threads", &args.cpu.pinned}};
  if (args.command == "serve") return threads;
  if (args.command != "run") return {};
  threads.emplace("--detach", &args.detach);
  threads.emplace("--create-per-frame", &args.create_per_frame);
  return threads;
}

Options burn(Args& args) {
  return {{"--steps", counts(args.burn_threads, 0, 1024, 1000)}, {"--step-ms", count(args.step_ms, 1, kHourMs)}};
}

Options options_of(Args& args) {
  if (args.command == "probe") return every_measurement(args);
  const Options common = merged(load(args), every_measurement(args));
  if (args.command == "run") return merged(run(args), merged(block(args), common));
  if (args.command == "exec") return merged(exec(args), merged(block(args), common));
  if (args.command == "serve") return merged(serve(args), common);
  if (args.command == "burn") return merged(burn(args), common);
  if (args.command == "follow")
    return {{"--journal", some_text(args.journal)},
            {"--offset", bytes(args.offset)},
            {"--wait-ms", count(args.wait_ms, 1, kHourMs)}};
  if (args.command == "stop") return {{"--marker-prefix", text(args.marker_prefix)}};
  return {};
}

Status check(const Args& args) {
  if (args.command == "stop" && args.marker_prefix.empty())
    return usage("stop: --marker-prefix is needed and must not be empty");
  if (args.command == "follow" && (args.journal.empty() || args.wait_ms == 0))
    return usage("follow: --journal FILE and --wait-ms N are needed");
  if (args.detach && args.journal.empty()) return usage(args.command + ": --detach needs --journal FILE");
  if (args.command == "burn" && (args.burn_threads.empty() || args.step_ms == 0))
    return usage("burn: --steps THREADS,... and --step-ms N are needed");
  if (args.command == "exec" && (args.folder.empty() || args.program.empty()))
    return usage("exec: --folder DIR and `-- PROGRAM` are needed");
  if (args.command == "exec" && args.warmup + args.samples + args.load_ms == 0)
    return usage("exec: --warmup, --samples and --load-ms are all 0: nothing to run");
  if (args.command != "run") return kOk;
  if (args.plan.empty()) return usage("run: --plan DIR is needed");
  if (args.cpu.pipeline != CpuUse::Pipeline::none && args.inferences == 1)
    return usage("run: --pipeline needs --inferences above 1: one frame after the other has nothing to overlap with");
  if (args.checkpoint_every > 0 && args.checkpoint.empty()) return usage("run: --checkpoint-every needs --checkpoint FILE");
  if (args.cpu.pipeline != CpuUse::Pipeline::none && args.cpu.per_call)
    return usage("run: --pipeline keeps its threads; leave out --threads-per-call");
  if (args.create_per_frame && (args.cpu.pipeline != CpuUse::Pipeline::none || args.layer_passes > 0))
    return usage("run: --create-per-frame has nothing that stays for --pipeline or --layer-passes");
  if (args.warmup + args.samples + args.load_ms + args.layer_passes == 0)
    return usage("run: --warmup, --samples, --load-ms and --layer-passes are all 0: nothing to run");
  return kOk;
}

}  // namespace

Result<Args> parse_args(int argc, char** argv) {
  static const std::vector<std::string> commands{"probe", "run", "exec", "serve", "burn", "follow", "stop", "version"};
  Args args;
  args.command = argc > 1 ? argv[1] : "";
  if (std::find(commands.begin(), commands.end(), args.command) == commands.end())
    return usage("unknown command `" + args.command + "`; there are: probe, run, exec, serve, burn, follow, stop, version");
  const Options options = options_of(args);
  const auto flags = flags_of(args);
  for (int i = 2; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--" && args.command == "exec") {
      args.program.assign(argv + i + 1, argv + argc);
      break;
    }
    if (const auto flag = flags.find(name); flag != flags.end()) {
      *flag->second = true;
      continue;
    }
    const auto option = options.find(name);
    if (option == options.end()) return usage(args.command + ": unknown option `" + name + "`");
    if (i + 1 == argc) return usage(args.command + ": " + name + " needs a value");
    if (auto error = option->second(argv[++i])) return usage(args.command + ": " + name + ": " + error->message);
  }
  args.cpu.per_call |= args.cpu.in_order;
  if (auto error = check(args)) return *error;
  return args;
}

}  // namespace pocketfarm
