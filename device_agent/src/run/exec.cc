#include "commands.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "device/affinity.h"
#include "device/slot.h"
#include "journal/setup_log.h"
#include "schedule.h"
#include "process/child.h"
#include "system/clock.h"
#include "telemetry/memory.h"

namespace pocketfarm {
namespace {

constexpr size_t kMostOutput = 1 << 18;  // bytes of a block's lines that the journal keeps
constexpr size_t kMostCounted = 200;     // bytes that a line takes besides its text, at most

class Programs : public Samples {
 public:
  Programs(const Args& args, Journal& journal) : args_(args), journal_(journal), variables_(args.variables) {
    const char* known = std::getenv("LD_LIBRARY_PATH");
    variables_.push_back("LD_LIBRARY_PATH=" + args.folder + ":" + args.folder + "/lib" + (known ? std::string(":") + known : ""));
    if (!args.marker.empty()) variables_.push_back("POCKETFARM_MARKER=" + args.marker);
  }

  Result<int64_t> sample(const char* phase, int index) override {
    const auto end = run_child(args_.program, args_.folder, variables_,
                               [&](const char* stream, std::string_view text, bool whole) {
                                 keep(JsonObject().set("index", index).set("phase", phase).set("stream", stream), text, whole);
                               },
                               [&](int pid) { peak_pss_bytes_ = std::max(peak_pss_bytes_, tree_pss_bytes(pid)); });
    if (!end) return end.error();
    peak_rss_bytes_ = std::max(peak_rss_bytes_, end->peak_rss_bytes);
    journal_.write("process", JsonObject()
                                  .set("index", index)
                                  .set("phase", phase)
                                  .set("pid", end->pid)
                                  .set("start_ns", end->start_ns)
                                  .set("end_ns", end->end_ns)
                                  .set("status", end->status)
                                  .set("signal", end->signal)
                                  .set("user_ns", end->user_ns)
                                  .set("system_ns", end->system_ns)
                                  .set("peak_rss_bytes", end->peak_rss_bytes)
                                  .set("cpus", allowed_cpus())
                                  .set("dropped_bytes", dropped_));
    if (end->signal != 0) return Error{Code::program_failed, "signal " + std::to_string(end->signal) + " ended the program"};
    if (end->status != 0) return Error{Code::program_failed, "the program ended with exit status " + std::to_string(end->status)};
    const int64_t duration_ns = end->end_ns - end->start_ns;
    journal_.write("sample", JsonObject()
                                 .set("index", index)
                                 .set("phase", phase)
                                 .set("start_ns", end->start_ns)
                                 .set("duration_ns", duration_ns)
                                 .set("inferences", 1));
    if (auto error = journal_.status()) return *error;
    return duration_ns;
  }

  int64_t peak_rss_bytes() const { return peak_rss_bytes_; }
  std::optional<int64_t> peak_pss_bytes() const { return peak_pss_bytes_; }

 private:
  // From the thread that reads.
  void keep(JsonObject line, std::string_view text, bool whole) {
    if (kept_ + text.size() > kMostOutput) {
      dropped_ += static_cast<int64_t>(text.size());
      return;
    }
    kept_ += text.size() + kMostCounted;
    journal_.write("line", line.set("text", text).set("whole", whole));
  }

  const Args& args_;
  Journal& journal_;
  std::vector<std::string> variables_;
  size_t kept_ = 0;
  int64_t dropped_ = 0, peak_rss_bytes_ = 0;
  std::optional<int64_t> peak_pss_bytes_;  // from the thread that reads
};

}  // namespace

Result<int> exec_program(const Args& args, const Environment& environment, Journal& journal, Watchdog& watchdog) {
  SetupLog log(journal);
  const int64_t waits_ns = boottime_ns();
  Result<Descriptor> slot = environment.slot.empty() ? Descriptor() : take_slot(environment.slot, log);
  if (!slot) return slot.error();
  if (environment.slot.empty()) log.record("slot", waits_ns);
  watchdog.arm(args.deadline_s);
  Programs programs(args, journal);
  const auto count = run_block(args, environment, journal, programs);
  if (!count) return count.error();
  const int64_t peak = programs.peak_rss_bytes();  // nobody counts what it allocates on the device
  JsonObject memory = JsonObject().set("device_bytes", peak).set("device_peak_bytes", peak);
  memory.set("vm_hwm_bytes", peak).set("vm_rss_bytes", peak);
  if (const auto pss = programs.peak_pss_bytes()) memory.set("pss_bytes", *pss);
  journal.write("memory", memory);
  return *count;
}

}  // namespace pocketfarm
