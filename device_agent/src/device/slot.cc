#include "slot.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

namespace pocketfarm {

Result<Descriptor> take_slot(const std::string& path) {
  Descriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd) return io_error("cannot open the slot's lock file", path, errno);
  while (::flock(fd.get(), LOCK_EX) != 0)
    if (errno != EINTR) return io_error("cannot lock the slot", path, errno);
  return fd;
}

Result<Descriptor> take_slot(const std::string& path, SetupLog& log) {
  const int64_t start_ns = boottime_ns();
  auto slot = take_slot(path);
  if (slot) log.record("slot", start_ns);
  return slot;
}

}  // namespace pocketfarm
