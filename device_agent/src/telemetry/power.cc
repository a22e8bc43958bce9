#include "power.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "../clock.h"

namespace pocketfarm {
namespace {

constexpr size_t kMaxNodes = 64;

std::vector<std::string> entries(const std::string& folder) {
  std::vector<std::string> out;
  DIR* dir = ::opendir(folder.c_str());
  if (dir == nullptr) return out;
  while (const dirent* entry = ::readdir(dir))
    if (entry->d_name[0] != '.') out.emplace_back(entry->d_name);
  ::closedir(dir);
  std::sort(out.begin(), out.end());
  return out;
}

// The supply of type Battery that has a live current node; else any battery.
std::string battery_folder(const std::string& supplies) {
  std::string found;
  for (const std::string& name : entries(supplies)) {
    const std::string folder = supplies + "/" + name;
    if (read_node(folder + "/type") != "Battery") continue;
    if (!read_node(folder + "/current_now").empty()) return folder;
    if (found.empty()) found = folder;
  }
  return found;
}

Node first_readable(const std::vector<std::string>& paths, bool reopen) {
  for (const std::string& path : paths)
    if (Node node(path, reopen); node && node.number()) return node;
  return {};
}

void set(JsonObject& fields, const char* key, Node& node) {
  if (const auto value = node.number()) fields.set(key, *value);
}

}  // namespace

Node::Node(std::string path, bool reopen)
    : path_(std::move(path)), reopen_(reopen), fd_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {}

std::string Node::text() {
  if (path_.empty()) return "";
  if (reopen_) fd_ = Descriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  char buffer[128];
  const ssize_t got = fd_ ? ::pread(fd_.get(), buffer, sizeof buffer, 0) : 0;
  if (got <= 0) return "";
  const std::string out(buffer, static_cast<size_t>(got));
  return out.substr(0, out.find_last_not_of(" \t\r\n") + 1);
}

std::optional<int64_t> Node::number() {
  const std::string value = text();
  char* end = nullptr;
  errno = 0;
  const int64_t number = std::strtoll(value.c_str(), &end, 10);
  if (end == value.c_str() || errno != 0) return std::nullopt;
  return number;
}

Gauge Gauge::open(const std::string& sysroot) {
  const bool reopen = !sysroot.empty();
  const std::string sys = sysroot + "/sys";
  Gauge gauge;
  if (const std::string battery = battery_folder(sys + "/class/power_supply"); !battery.empty()) {
    gauge.current = first_readable({battery + "/current_now", battery + "/current_avg"}, reopen);
    gauge.voltage = first_readable({battery + "/voltage_now"}, reopen);
    gauge.temp = first_readable({battery + "/temp"}, reopen);
    gauge.charge = first_readable({battery + "/charge_counter", battery + "/charge_now"}, reopen);
    gauge.status = Node(battery + "/status", reopen);
  }
  const std::string kgsl = sys + "/class/kgsl/kgsl-3d0", mali = sys + "/class/misc/mali0/device";
  gauge.gpu_clock = first_readable({kgsl + "/gpuclk", kgsl + "/devfreq/cur_freq", mali + "/cur_freq", mali + "/clock"}, reopen);
  for (size_t cpu = 0; cpu < kMaxNodes; ++cpu) {
    Node node = first_readable({sys + "/devices/system/cpu/cpu" + std::to_string(cpu) + "/cpufreq/scaling_cur_freq"}, reopen);
    if (node) gauge.cpu_clocks.push_back(std::move(node));
  }
  return gauge;
}

JsonObject Gauge::read() {
  JsonObject fields;
  set(fields, "current_ua", current);
  set(fields, "voltage_uv", voltage);
  set(fields, "temp_dc", temp);
  set(fields, "charge_uah", charge);
  fields.set("status", status.text());
  if (const auto clock = gpu_clock.number()) fields.set("gpu_hz", *clock < 100'000 ? *clock * 1'000'000 : *clock);
  std::vector<int64_t> khz;
  for (Node& node : cpu_clocks) khz.push_back(node.number().value_or(0));
  return fields.set("cpu_khz", khz);
}

PowerSampler::PowerSampler(Journal& journal, const std::string& sysroot, int period_ms)
    : journal_(journal), gauge_(Gauge::open(sysroot)), period_ns_(int64_t{period_ms} * 1'000'000),
      stop_(::eventfd(0, EFD_CLOEXEC)) {
  if (!gauge_.current)
    journal.write("warning", JsonObject()
                                 .set("code", "no_power_gauge")
                                 .set("message", "no readable current_now of a battery below " + sysroot +
                                                     "/sys/class/power_supply: use an external meter"));
  if (gauge_.any()) thread_ = std::thread([this] { sample(); });
}

PowerSampler::~PowerSampler() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
}

void PowerSampler::sample() {
  ::setpriority(PRIO_PROCESS, 0, 10);  // of this thread alone, on Linux
  int64_t due_ns = boottime_ns();
  do {
    journal_.write("power", gauge_.read());
    due_ns += period_ns_;
    if (const int64_t now_ns = boottime_ns(); due_ns < now_ns)
      due_ns += (now_ns - due_ns + period_ns_ - 1) / period_ns_ * period_ns_;  // a late reading is left out, not doubled
  } while (!stopped_before(due_ns));
}

bool PowerSampler::stopped_before(int64_t deadline_ns) {
  for (int64_t left_ns; (left_ns = deadline_ns - boottime_ns()) > 0;) {
    pollfd wait{stop_.get(), POLLIN, 0};
    const timespec timeout{static_cast<time_t>(left_ns / 1'000'000'000), static_cast<long>(left_ns % 1'000'000'000)};
    if (::ppoll(&wait, 1, &timeout, nullptr) > 0) return true;
  }
  pollfd look{stop_.get(), POLLIN, 0};
  return ::poll(&look, 1, 0) > 0;
}

}  // namespace pocketfarm
