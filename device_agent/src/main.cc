// Commands of the agent. The only file that ends the process.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "device/affinity.h"
#include "system/args.h"
#include "run/commands.h"
#include "system/clock.h"
#include "process/child.h"
#include "process/detach.h"
#include "device/environment.h"
#include "journal/journal.h"
#include "process/stop.h"
#include "process/watchdog.h"

namespace pocketfarm {
namespace {

constexpr int kUsageExit = 2;
constexpr int kFailedExit = 1;
constexpr int kGoesOnExit = 3;
constexpr size_t kReserveBytes = 65536;

char* reserve = new (std::nothrow) char[kReserveBytes];  // given back for the last line
Journal* opened = nullptr;                // of the commands that write events

Error error_of(std::exception_ptr fault) {
  try {
    if (fault) std::rethrow_exception(fault);
  } catch (const std::bad_alloc&) {
    return {Code::out_of_memory, "the agent itself ran out of memory"};
  } catch (const std::system_error& error) {
    const bool thread = error.code() == std::errc::resource_unavailable_try_again;
    return {thread ? Code::out_of_memory : Code::internal,
            thread ? "the system gives the agent no further thread: no memory, or too many processes; give it fewer threads"
                   : error.what()};
  } catch (const std::exception& error) {
    return {Code::internal, error.what()};
  } catch (...) {
  }
  return {Code::internal, "an exception of unknown type"};
}

// What no function could return as an error: in whatever thread it happens, it ends the process with a last line.
[[noreturn]] void end_by_exception() {
  delete[] std::exchange(reserve, nullptr);
  const Error error = error_of(std::current_exception());
  if (opened == nullptr || !opened->finish(error)) std::fprintf(stderr, "pocketfarm-agent: %s\n", error.message.c_str());
  ::_exit(kFailedExit);
}

JsonObject hello(const Args& args) {
  return JsonObject()
      .set("schema_version", 1)
      .set("agent_version", kAgentVersion)
      .set("command", args.command)
      .set("pid", ::getpid())
      .set("marker", args.marker)
      .set("boot_id", read_node("/proc/sys/kernel/random/boot_id"))
      .set("abi", abi())
      .set("cores", online_cores())
      .set("page_bytes", ::sysconf(_SC_PAGE_SIZE));
}

void finish_run(const Result<Ran>& ran, Journal& journal) {
  if (!ran) {
    journal.finish(ran.error());
    return;
  }
  journal.finish("result", JsonObject()
                               .set("samples", ran->samples)
                               .set("run_ns", ran->run_ns)
                               .set("suspended_ns", std::max<int64_t>(0, ran->suspended_ns)));  // a difference of two estimates
}

Result<int> probe(const Args& args, const Environment& environment, Journal& journal, Watchdog& watchdog) {
  watchdog.arm(args.deadline_s);
  probe_devices(environment, journal);
  return 0;
}

void execute(const Args& args, const Environment& environment, Journal& journal, Watchdog& watchdog) {
  try {
    if (args.command == "run") return finish_run(run_plan(args, environment, journal, watchdog), journal);
    const int64_t start_ns = boottime_ns(), slept_ns = suspended_ns(environment.sysroot);
    const auto act = args.command == "burn" ? burn : args.command == "serve" ? serve : args.command == "exec" ? exec_program : probe;
    const Result<int> done = act(args, environment, journal, watchdog);
    const int64_t ran_ns = boottime_ns() - start_ns, suspended = suspended_ns(environment.sysroot) - slept_ns;
    finish_run(done ? Result<Ran>(Ran{*done, ran_ns, suspended}) : done.error(), journal);
  } catch (...) {  // here what the command holds has been given back, so that there is memory for the last line
    journal.finish(error_of(std::current_exception()));
  }
}

// `probe`, `run`, `exec`, `serve` and `burn`. Drivers may crash or hang in their exit handlers: the process ends without running those.
[[noreturn]] void measure(const Args& args) {
  Watchdog::block_signals();
  static Journal journal;
  opened = &journal;
  if (Status error = Journal::open(args.journal, journal)) {
    journal.finish(*error);
    ::_exit(journal.exit_code());
  }
  Detached detached;
  if (args.detach) {
    const Result<int> child = detached.start(journal);
    if (!child) {
      std::fprintf(stderr, "pocketfarm-agent: %s\n", child.error().message.c_str());
      ::_exit(1);
    }
    if (*child > 0) {
      journal.print(JsonObject().set("pid", *child));
      if (args.command == "run" || args.command == "exec") detached.linger();
      ::_exit(0);
    }
  }
  journal.write("hello", hello(args));
  detached.ready();
  const Environment environment = Environment::read();
  // Before there is any other thread: they inherit it.
  if (Status error = args.cpus.empty() ? Status() : bind_cpus(args.cpus, environment.sysroot)) {
    journal.finish(*error);
    ::_exit(journal.exit_code());
  }
  Watchdog watchdog([](const Error& error) {
    journal.finish(error);
    kill_child();
    ::_exit(journal.exit_code());
  });
  execute(args, environment, journal, watchdog);
  ::_exit(journal.exit_code());
}

int main(int argc, char** argv) {
  std::set_terminate(end_by_exception);
  const Result<Args> args = parse_args(argc, argv);
  if (!args) {
    std::fprintf(stderr, "pocketfarm-agent: %s\n%s", args.error().message.c_str(), kUsage);
    return kUsageExit;
  }
  if (args->command == "version") {
    std::puts(JsonObject()
                  .set("agent_version", kAgentVersion)
                  .set("schema_version", 1)
                  .set("abi", abi())
                  .set("boottime_ns", boottime_ns())
                  .text()
                  .c_str());
    return 0;
  }
  if (args->command == "follow") {
    const Result<bool> ended = follow_journal(args->journal, static_cast<int64_t>(args->offset), args->wait_ms);
    if (ended) return *ended ? 0 : kGoesOnExit;
    std::fprintf(stderr, "pocketfarm-agent: %s\n", ended.error().message.c_str());
    return kFailedExit;
  }
  if (args->command == "stop") {
    std::printf("%d\n", stop_agents(args->marker_prefix, Environment::read().sysroot));
    return 0;
  }
  measure(*args);
}

}  // namespace
}  // namespace pocketfarm

int main(int argc, char** argv) { return pocketfarm::main(argc, argv); }
