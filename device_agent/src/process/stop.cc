#include "stop.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "system/files.h"

namespace pocketfarm {
namespace {

constexpr auto kGrace = std::chrono::seconds(3);
constexpr auto kLook = std::chrono::milliseconds(20);

constexpr char kSysroot[] = "POCKETFARM_SYSROOT=";
const std::string kMarker = "POCKETFARM_MARKER=";  // of children

// Strings of a file of /proc/<pid> that end with NUL; none where it is gone or not ours to read.
std::vector<std::string> strings_of(int pid, const char* name) {
  const auto text = read_bytes("/proc/" + std::to_string(pid) + "/" + name);
  std::vector<std::string> words;
  if (!text) return words;
  for (size_t at = 0; at < text->size(); at += words.back().size() + 1) words.emplace_back(text->c_str() + at);
  return words;
}

// The virtual phones of a host share its /proc: an agent belongs to the phone that its environment names.
std::string sysroot_of(int pid) {
  for (const std::string& entry : strings_of(pid, "environ"))
    if (entry.compare(0, sizeof kSysroot - 1, kSysroot) == 0) return entry.substr(sizeof kSysroot - 1);
  return "";
}

bool starts_with(const std::string& text, const std::string& start) { return text.compare(0, start.size(), start) == 0; }

// Of a process that an agent has started, or that one in turn: they outlive an agent that was killed.
bool is_child_of_marked(int pid, const std::string& prefix) {
  const std::vector<std::string> entries = strings_of(pid, "environ");
  return std::any_of(entries.begin(), entries.end(), [&](const std::string& each) { return starts_with(each, kMarker + prefix); });
}

bool has_marker(int pid, const std::string& prefix) {
  const std::vector<std::string> words = strings_of(pid, "cmdline");
  if (words.empty()) return false;
  if (is_child_of_marked(pid, prefix)) return true;
  if (words[0].substr(words[0].rfind('/') + 1) != "pocketfarm-agent") return false;
  const auto marker = std::find(words.begin(), words.end(), "--marker");
  return marker != words.end() && marker + 1 != words.end() && starts_with(*(marker + 1), prefix);
}

std::vector<int> agents(const std::string& prefix, const std::string& sysroot) {
  std::vector<int> pids;
  for (const std::string& entry : entries("/proc")) {
    const int pid = std::atoi(entry.c_str());
    if (pid > 0 && pid != ::getpid() && has_marker(pid, prefix) && sysroot_of(pid) == sysroot) pids.push_back(pid);
  }
  return pids;
}

// A zombie's command line is empty, so it counts as ended.
bool alive(int pid, const std::string& prefix) { return has_marker(pid, prefix); }

}  // namespace

int stop_agents(const std::string& prefix, const std::string& sysroot) {
  const std::vector<int> pids = agents(prefix, sysroot);
  for (int pid : pids) ::kill(pid, SIGTERM);
  const auto until = std::chrono::steady_clock::now() + kGrace;
  const auto any_alive = [&] { return std::any_of(pids.begin(), pids.end(), [&](int pid) { return alive(pid, prefix); }); };
  while (any_alive() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(kLook);
  for (int pid : pids)
    if (alive(pid, prefix)) ::kill(pid, SIGKILL);
  return static_cast<int>(pids.size());
}

}  // namespace pocketfarm
