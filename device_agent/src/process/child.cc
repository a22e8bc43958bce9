#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "system/clock.h"
#include "system/files.h"
#include "system/thread.h"

extern char** environ;

namespace pocketfarm {
namespace {

std::atomic<int> running{0};
constexpr int kMostHeld = 64;  // reads of what a program's pipes may hold
constexpr int64_t kFirstLookNs = 100'000'000;

struct Pipe {
  Descriptor reading, writing;

  static Result<Pipe> open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return io_error("cannot make a pipe", "of a program", errno);
    return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
  }
};

std::string place_of(const std::string& name, const std::string& folder) {
  if (name.find('/') != std::string::npos) return name;  // from the folder on, where it runs
  const char* path = std::getenv("PATH");
  std::string places = folder + ":" + (path == nullptr ? "/system/bin:/usr/bin:/bin" : path) + ":";
  for (size_t at = 0, end; (end = places.find(':', at)) != std::string::npos; at = end + 1) {
    const std::string found = places.substr(at, end - at) + "/" + name;
    if (::access(found.c_str(), X_OK) == 0) return found;
  }
  return folder + "/" + name;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> found;
  for (const std::string& text : texts) found.push_back(const_cast<char*>(text.c_str()));
  found.push_back(nullptr);
  return found;
}

std::vector<std::string> environment_with(const std::vector<std::string>& variables) {
  std::vector<std::string> all = variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string name(*entry, std::strcspn(*entry, "=") + 1);
    const auto replaced = [&](const std::string& each) { return each.compare(0, name.size(), name) == 0; };
    if (std::none_of(variables.begin(), variables.end(), replaced)) all.emplace_back(*entry);
  }
  return all;
}

// What the child does between fork and exec: calls that are safe there alone.
[[noreturn]] void become(char* const* argv, char* const* variables, const char* path, const char* folder, int parent,
                         int out, int err, int failed) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  for (int each : {SIGPIPE, SIGXFSZ, SIGHUP}) ::signal(each, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null = ::open("/dev/null", O_RDONLY);
  if (::dup2(null, STDIN_FILENO) >= 0 && ::dup2(out, STDOUT_FILENO) >= 0 && ::dup2(err, STDERR_FILENO) >= 0 &&
      ::chdir(folder) == 0)
    ::execve(path, argv, variables);
  const int why = errno;
  [[maybe_unused]] const ssize_t told = ::write(failed, &why, sizeof why);
  ::_exit(127);
}

// One stream of a child, cut into lines.
class Stream {
 public:
  Stream(Descriptor fd, const char* name, const OnLine& on_line) : fd_(std::move(fd)), name_(name), on_line_(on_line) {}

  int fd() const { return fd_.get(); }
  // Reads some of what is there, or the end.
  void read() {
    char block[16384];
    const auto got = read_some(fd_, block, sizeof block, name_);
    if (!got || *got == 0) return close();
    take(std::string_view(block, *got));
  }
  void close() {
    if (!waiting_.empty()) on_line_(name_, waiting_, false);
    waiting_.clear();
    fd_ = Descriptor();
  }

 private:
  static constexpr size_t kLongest = 1 << 18;

  void take(std::string_view text) {
    for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
      waiting_ += text.substr(0, end);
      if (!waiting_.empty() && waiting_.back() == '\r') waiting_.pop_back();
      on_line_(name_, waiting_, true);
      waiting_.clear();
    }
    waiting_ += text;
    if (waiting_.size() <= kLongest) return;
    on_line_(name_, waiting_, false);
    waiting_.clear();
  }

  Descriptor fd_;
  const char* name_;
  const OnLine& on_line_;
  std::string waiting_;
};

// When a process is looked at.
class Looks {
 public:
  Looks(int pid, const OnLook& on_look) : pid_(pid), on_look_(on_look) {}

  int wait_ms() const { return static_cast<int>(std::clamp<int64_t>((next_ns_ - boottime_ns()) / 1'000'000 + 1, 0, 60'000)); }
  void look_if_due() {
    if (boottime_ns() < next_ns_) return;
    on_look_(pid_);
    next_ns_ = boottime_ns() + (pause_ns_ *= 2);
  }

 private:
  const int pid_;
  const OnLook& on_look_;
  int64_t pause_ns_ = kFirstLookNs, next_ns_ = boottime_ns() + kFirstLookNs;
};

// Reads both streams until `over` closes, and then what they still hold: who has left the group may write for ever.
void follow(Stream& out, Stream& err, const Descriptor& over, Looks looks) {
  for (int left = kMostHeld; left > 0;) {
    pollfd ready[] = {{out.fd(), POLLIN, 0}, {err.fd(), POLLIN, 0}, {over.get(), POLLIN, 0}};
    if (::poll(ready, 3, looks.wait_ms()) < 0) continue;
    if (ready[0].revents != 0) out.read();
    if (ready[1].revents != 0) err.read();
    if (ready[2].revents == 0) {
      looks.look_if_due();
      continue;
    }
    left = ready[0].revents != 0 || ready[1].revents != 0 ? left - 1 : 0;
  }
  out.close();
  err.close();
}

int64_t ns_of(const timeval& time) { return int64_t{time.tv_sec} * 1'000'000'000 + int64_t{time.tv_usec} * 1000; }

ChildEnd await(int pid, int64_t start_ns) {
  int state = 0;
  rusage used{};
  while (::wait4(pid, &state, 0, &used) < 0 && errno == EINTR) {
  }
  ChildEnd end{pid, start_ns, boottime_ns()};
  end.status = WIFEXITED(state) ? WEXITSTATUS(state) : 0;
  end.signal = WIFSIGNALED(state) ? WTERMSIG(state) : 0;
  end.user_ns = ns_of(used.ru_utime), end.system_ns = ns_of(used.ru_stime);
  end.peak_rss_bytes = int64_t{used.ru_maxrss} * 1024;
  return end;
}

}  // namespace

Result<ChildEnd> run_child(const std::vector<std::string>& argv, const std::string& folder,
                           const std::vector<std::string>& variables, const OnLine& on_line, const OnLook& on_look) {
  auto out = Pipe::open(), err = Pipe::open(), failed = Pipe::open(), over = Pipe::open();
  for (const auto* pipe : {&out, &err, &failed, &over})
    if (!*pipe) return pipe->error();
  const std::string path = place_of(argv[0], folder);
  const std::vector<std::string> all = environment_with(variables);
  const auto arguments = pointers(argv), environment = pointers(all);
  const int parent = ::getpid();
  const int64_t start_ns = boottime_ns();
  const int pid = ::fork();
  if (pid < 0) return Error{Code::program_failed, std::string("cannot start a process: ") + std::strerror(errno)};
  if (pid == 0)
    become(arguments.data(), environment.data(), path.c_str(), folder.c_str(), parent, out->writing.get(),
           err->writing.get(), failed->writing.get());
  running = pid;
  for (Pipe* each : {&*out, &*err, &*failed}) each->writing = Descriptor();
  Stream output(std::move(out->reading), "stdout", on_line), errors(std::move(err->reading), "stderr", on_line);
  std::thread reader = start_thread([&] { follow(output, errors, over->reading, Looks(pid, on_look)); });
  const ChildEnd end = await(pid, start_ns);
  ::kill(-pid, SIGKILL);  // what it has left behind
  running = 0;
  over->writing = Descriptor();
  reader.join();
  int why = 0;
  const auto told = read_some(failed->reading, &why, sizeof why, "a pipe");
  if (told && *told == sizeof why) {
    errno = why;
    return Error{Code::program_failed, "cannot start " + path + ": " + std::strerror(why)};
  }
  return end;
}

int child_pid() { return running; }

void kill_child() {
  if (const int pid = running; pid > 0) ::kill(-pid, SIGKILL);
}

}  // namespace pocketfarm
