#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/time.h>
#include <unistd.h>

#include "system/files.h"

namespace pocketfarm {
namespace {

constexpr size_t kPart = 65536;
constexpr int kAgainUs = 10'000;  // a signal that came before the wait began is followed by another

bool ends_within(const Descriptor& journal, int wait_ms) {
  struct sigaction wake {};
  wake.sa_handler = [](int) {};  // without SA_RESTART it ends the wait
  ::sigaction(SIGALRM, &wake, nullptr);
  const itimerval timer{{0, kAgainUs}, {wait_ms / 1000, wait_ms % 1000 * 1000}};
  ::setitimer(ITIMER_REAL, &timer, nullptr);
  const bool ended = ::flock(journal.get(), LOCK_SH) == 0;
  const itimerval none{};
  ::setitimer(ITIMER_REAL, &none, nullptr);
  if (ended) ::flock(journal.get(), LOCK_UN);
  return ended;
}

}  // namespace

Result<bool> follow_journal(const std::string& path, int64_t offset, int wait_ms) {
  const Descriptor journal(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!journal) return io_error("cannot read the journal", path, errno);
  const bool ended = ends_within(journal, wait_ms);
  for (std::string part(kPart, '\0');;) {
    const auto got = read_some(journal, part.data(), part.size(), path, offset);
    if (!got) return got.error();
    if (*got == 0) return ended;
    if (auto error = write_all(STDOUT_FILENO, part.data(), *got, "standard output")) return *error;
    offset += static_cast<int64_t>(*got);
  }
}

}  // namespace pocketfarm
