#include "commands.h"

#include <unistd.h>

#include <optional>

#include "device/slot.h"
#include "generation.h"
#include "journal/setup_log.h"
#include "open_device.h"
#include "request.h"
#include "system/clock.h"
#include "system/lines.h"
#include "telemetry/memory.h"
#include "telemetry/sampler.h"

namespace pocketfarm {
namespace {

// A network that is loaded: its plan stays on the device.
struct Network {
  std::string name;
  Bundle bundle;
  std::optional<Inputs> inputs;
  Backend* backend = nullptr;
  Args args;  // with its own text, of one that generates
  std::optional<Generation> generation;

  Status infer(int64_t count) {
    for (int64_t i = 0; generation && i < count; ++i)
      if (const auto answer = generation->answer(generation->given(), 0, 1); !answer) return answer.error();
    if (generation) return kOk;
    for (int64_t i = 0; i < count; ++i) {
      if (auto error = inputs->write(*backend)) return error;
      if (auto error = backend->run()) return error;
    }
    return kOk;
  }
};

using Networks = std::vector<std::unique_ptr<Network>>;

// Inputs are named NETWORK:PORT.
Inputs::Named inputs_of(const Args& args, const std::string& network) {
  Inputs::Named found;
  for (const auto& [name, file] : args.inputs)
    if (name.rfind(network + ":", 0) == 0) found.emplace_back(name.substr(network.size() + 1), file);
  return found;
}

Result<std::unique_ptr<Network>> read_network(const std::string& name, const std::string& folder, const Args& args) {
  auto network = std::make_unique<Network>();
  network->name = name;
  auto bundle = Bundle::read(folder);
  if (!bundle) return bundle.error();
  network->bundle = std::move(*bundle);
  if (network->bundle.plan.trains()) return Error{Code::usage, "network `" + name + "`: its plan trains; serve one that infers"};
  network->args = args;
  Inputs::Named files = inputs_of(args, name);
  if (!network->bundle.plan.passes.empty()) {
    if (files.size() != 1 || files.front().first != "tokens")
      return Error{Code::usage, "network `" + name + "` generates: give its text by --input " + name + ":tokens=FILE, and nothing else"};
    if (network->bundle.plan.sequences > 1)
      return Error{Code::usage, "network `" + name + "` takes several sequences at once, and a request is one: serve a plan of one"};
    network->args.tokens = files.front().second;
    files.clear();
  }
  auto inputs = Inputs::open(network->bundle.plan, files, /*stream=*/false);
  if (!inputs) return inputs.error();
  network->inputs = std::move(*inputs);
  return network;
}

// Checked before the last one is opened: all networks of one API lie on its device at once.
Status check_together(const Networks& networks, int memory_mib) {
  const Network& last = *networks.back();
  uint64_t total = 0, limit = uint64_t{1} * memory_mib << 20;
  for (const auto& each : networks) {
    if (each->bundle.plan.api != last.bundle.plan.api) continue;
    for (const Pool& pool : each->bundle.plan.pools) total += pool.bytes;
    if (limit == 0 && each->backend != nullptr) limit = each->backend->facts().global_bytes;
  }
  if (limit == 0 || total <= limit) return kOk;
  return Error{Code::limit, "the networks up to `" + last.name + "` need " + std::to_string(total) +
                                " bytes together, and there are " + std::to_string(limit) + "; serve fewer networks"};
}

Result<Networks> load(const Args& args, const Environment& environment, Journal& journal, SetupLog& log) {
  Networks networks;
  if (!args.cache_dir.empty())
    if (auto error = make_folder(args.cache_dir)) return *error;
  for (const auto& [name, folder] : args.plans) {
    auto network = read_network(name, folder, args);
    if (!network) return network.error();
    networks.push_back(std::move(*network));
    Network& added = *networks.back();
    if (auto error = check_together(networks, args.memory_mib)) return *error;
    const auto backend = open_device(added.bundle, *added.inputs, args, environment, journal, log);
    if (!backend) return backend.error();
    added.backend = *backend;
    if (!added.bundle.plan.passes.empty()) {
      auto generation = Generation::open(added.bundle.plan, **backend, journal, added.args);
      if (!generation) return generation.error();
      added.generation.emplace(std::move(*generation));
    }
    if (auto error = added.infer(args.warmup)) return *error;
  }
  return networks;
}

// Answers one request after the other.
class Server {
 public:
  Server(Networks networks, const std::string& slot, Journal& journal, HeatGate& gate)
      : networks_(std::move(networks)), slot_(slot), journal_(journal), gate_(gate) {
    for (const auto& each : networks_)
      if (each->generation) each->generation->watch(gate);
  }

  void ready() {
    std::vector<std::string> names;
    uint64_t bytes = 0;
    for (const auto& each : networks_) {
      names.push_back(each->name);
      bytes += each->backend->device_bytes();
    }
    journal_.write("memory", memory_fields(bytes));
    journal_.write("ready", JsonObject().set("networks", names));
  }

  // `too_hot` where the phone is: an answer that has begun ends between two tokens, and is none.
  Status answer(const Request& request) {
    const Status answered = answer_cool(request);
    return !answered && gate_.is_hot() ? Error{Code::too_hot, gate_.what() + ": request " + std::to_string(request.id) + " was the last"} : answered;
  }

 private:
  Status answer_cool(const Request& request) {
    if (request.deadline_ns > 0 && boottime_ns() > request.deadline_ns) return tell(request, boottime_ns(), "late");
    if (request.network.empty()) {
      const int64_t start_ns = boottime_ns();
      sleep_until(start_ns + request.hold_ns);
      return tell(request, start_ns, "ok");
    }
    for (const auto& each : networks_)
      if (each->name == request.network) return compute(request, *each);
    return tell(request, boottime_ns(), "unknown_network");
  }

  Status compute(const Request& request, Network& network) {
    if (network.generation.has_value() != (request.generate > 0 && request.prompt > 0))
      return Error{Code::usage, "network `" + network.name + "`: `prompt` and `generate` are both given to one that generates, and to no other"};
    Result<Descriptor> turn = slot_.empty() ? Descriptor() : take_slot(slot_);
    if (!turn) return turn.error();
    if (network.generation) {
      const auto answer = network.generation->answer(static_cast<size_t>(request.prompt), 0, static_cast<int>(request.generate));
      if (!answer) return answer.error();
      if (static_cast<int64_t>(answer->token_ns.size()) < request.generate) return kOk;  // it is hot
      return tell(request, answer->start_ns, "ok", answer->token_ns);
    }
    const int64_t start_ns = boottime_ns();
    if (auto error = network.infer(request.count)) return error;
    return tell(request, start_ns, "ok");
  }

  Status tell(const Request& request, int64_t start_ns, const char* status, const std::vector<int64_t>& token_ns = {}) {
    JsonObject line;
    line.set("id", request.id).set("start_ns", start_ns).set("end_ns", boottime_ns()).set("status", status);
    if (!token_ns.empty()) line.set("first_ns", token_ns.front()).set("tokens", static_cast<int64_t>(token_ns.size()));
    journal_.write("served", line);
    return journal_.status();
  }

  const Networks networks_;
  const std::string slot_;
  Journal& journal_;
  HeatGate& gate_;
};

}  // namespace

Result<int> serve(const Args& args, const Environment& environment, Journal& journal, Watchdog& watchdog) {
  SetupLog log(journal);
  std::optional<Result<Descriptor>> slot;
  if (!environment.slot.empty()) slot.emplace(take_slot(environment.slot, log));
  if (slot && !*slot) return slot->error();
  watchdog.arm(args.deadline_s);
  auto networks = load(args, environment, journal, log);
  if (!networks) return networks.error();
  slot.reset();  // others have their turn between our requests
  std::optional<Sampler> sampler;
  if (args.power_period_ms > 0) sampler.emplace(journal, environment.sysroot, args.power_period_ms);
  HeatGate gate(journal, environment.sysroot, args.stop_temp_dc);
  Server server(std::move(*networks), environment.slot, journal, gate);
  server.ready();
  Lines lines(Descriptor(STDIN_FILENO), "standard input");
  for (int answered = 0;; ++answered) {
    const auto line = lines.next();
    if (!line) return line.error();
    if (!*line) return answered;
    const auto request = parse_request(**line);
    if (!request) return request.error();
    if (auto error = server.answer(*request)) return *error;
  }
}

}  // namespace pocketfarm
