#include "affinity.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "system/files.h"

namespace pocketfarm {
namespace {

constexpr const char* kPresent = "/sys/devices/system/cpu/present";
constexpr const char* kOnline = "/sys/devices/system/cpu/online";

Error not_a_list(const std::string& list) {
  return {Code::usage, "--cpus: expected cores from 0 to " + std::to_string(CPU_SETSIZE - 1) +
                           " such as 0-3,6, got `" + list + "`"};
}

// A core's number at `at`, which moves behind it; -1 where there is none.
int take_core(const std::string& list, size_t& at) {
  const size_t start = at;
  int core = 0;
  for (; at < list.size() && list[at] >= '0' && list[at] <= '9'; ++at)
    core = std::min(core * 10 + list[at] - '0', CPU_SETSIZE);
  return at == start || core >= CPU_SETSIZE ? -1 : core;
}

// Cores that a thread may use; none where it is gone.
std::vector<int> cpus_of(int thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (::sched_getaffinity(thread, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

bool let_run_on(const std::vector<int>& cpus, int thread = 0) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu : cpus) CPU_SET(cpu, &set);
  return ::sched_setaffinity(thread, sizeof set, &set) == 0;
}

// Cores that this process may use, those that are switched off among them; sched_getaffinity leaves them out.
std::string allowed_list() {
  constexpr char kKey[] = "\nCpus_allowed_list:";
  const std::string status = read_node("/proc/self/status");
  const size_t at = status.find(kKey);
  if (at == std::string::npos) return "";
  const size_t begin = status.find_first_not_of(" \t", at + sizeof kKey - 1);
  return begin == std::string::npos ? "" : status.substr(begin, status.find('\n', begin) - begin);
}

Error refused(const std::string& list, const std::string& present, const std::string& why) {
  return {Code::usage, "--cpus " + list + ": " + why + "; there are the cores " + present};
}

// Cores that the system has switched off say nothing against the plan, nor against the command line.
Status check_online(const std::string& list, const std::vector<int>& cpus, const std::string& online) {
  const auto running = parse_cpus(online);
  if (!running || std::includes(running->begin(), running->end(), cpus.begin(), cpus.end())) return kOk;
  return Error{Code::device_error, "--cpus " + list + ": some of these cores are offline now; online are " + online};
}

// The host's cores that stand for a virtual phone's.
std::vector<int> of_the_host(const std::vector<int>& cpus) {
  const std::vector<int> host = allowed_cpus();
  std::set<int> shared;
  for (int cpu : cpus) shared.insert(host[static_cast<size_t>(cpu) % host.size()]);
  return {shared.begin(), shared.end()};
}

}  // namespace

std::vector<int> allowed_cpus() {
  std::vector<int> cpus = cpus_of(0);
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

int usable_cores() {
  const auto allowed = parse_cpus(allowed_list()), present = parse_cpus(read_node(kPresent));
  if (!allowed || !present) return static_cast<int>(allowed_cpus().size());
  const auto usable = [&](int cpu) { return std::binary_search(allowed->begin(), allowed->end(), cpu); };
  return std::max(1, static_cast<int>(std::count_if(present->begin(), present->end(), usable)));
}

Result<std::vector<int>> parse_cpus(const std::string& list) {
  std::set<int> cpus;
  for (size_t at = 0;; ++at) {
    const int first = take_core(list, at);
    int last = first;
    if (at < list.size() && list[at] == '-') last = take_core(list, ++at);
    if (first < 0 || last < first || (at < list.size() && list[at] != ',')) return not_a_list(list);
    for (int cpu = first; cpu <= last; ++cpu) cpus.insert(cpu);
    if (at == list.size()) return std::vector<int>(cpus.begin(), cpus.end());
  }
}

Status bind_cpus(const std::string& list, const std::string& sysroot) {
  auto cpus = parse_cpus(list);
  if (!cpus) return cpus.error();
  const std::string own = sysroot.empty() ? "" : read_node(sysroot + kPresent);
  const std::string present = own.empty() ? read_node(kPresent) : own;
  if (const auto there = parse_cpus(present))
    if (!std::includes(there->begin(), there->end(), cpus->begin(), cpus->end()))
      return refused(list, present, "no such core");
  if (auto error = check_online(list, *cpus, read_node((own.empty() ? "" : sysroot) + kOnline))) return error;
  if (!own.empty()) *cpus = of_the_host(*cpus);
  if (!let_run_on(*cpus)) return refused(list, present, strerror(errno));
  if (allowed_cpus() != *cpus) return refused(list, present, "the system does not let us use all of them");
  return kOk;
}

void bind_strays() {
  const std::vector<int> cpus = allowed_cpus();
  for (const std::string& task : entries("/proc/self/task")) {
    const int thread = std::atoi(task.c_str());
    const std::vector<int> its = cpus_of(thread);
    if (!std::includes(cpus.begin(), cpus.end(), its.begin(), its.end())) let_run_on(cpus, thread);
  }
}

bool pin_this_thread(int cpu) { return let_run_on({cpu}); }

}  // namespace pocketfarm
