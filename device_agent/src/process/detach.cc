#include "detach.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <string>

namespace pocketfarm {
namespace {

constexpr int kLingerMs = 50;

bool await_byte(const Descriptor& fd) {
  char byte;
  const auto got = read_some(fd, &byte, 1, "the pipe");
  return got && *got == 1;
}

}  // namespace

Result<int> Detached::start(Journal& journal) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error{Code::internal, std::string("pipe: ") + strerror(errno)};
  Descriptor reading(ends[0]), writing(ends[1]);
  const int pid = ::fork();
  if (pid < 0) return Error{Code::internal, std::string("fork: ") + strerror(errno)};
  if (pid == 0) {
    ready_ = std::move(writing);
    become_child(journal);
    return 0;
  }
  { const Descriptor closed = std::move(writing); }
  if (!await_byte(reading))
    return Error{Code::internal, "the detached agent ended before its first line; read its journal"};
  child_ = std::move(reading);
  return pid;
}

void Detached::become_child(Journal& journal) {
  ::setsid();
  ::signal(SIGHUP, SIG_IGN);
  const Descriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null.get(), stream);
  journal.detach();
}

void Detached::ready() {
  if (!ready_) return;
  const char byte = 1;
  [[maybe_unused]] const ssize_t written = ::write(ready_.get(), &byte, 1);
}

void Detached::linger() {
  pollfd child{child_.get(), 0, 0};
  ::poll(&child, 1, kLingerMs);
}

}  // namespace pocketfarm
