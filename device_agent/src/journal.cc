#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "clock.h"

namespace pocketfarm {
namespace {

constexpr uint64_t kLastWords = 8192;     // storage kept free for the line that says that the storage is full
constexpr uint64_t kReserveStep = 65536;  // reserved at a time
constexpr auto kPatience = std::chrono::seconds(2);

}  // namespace

Status Journal::open(const std::string& path, Journal& journal) {
  journal.output_ = Descriptor(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  if (path.empty()) return kOk;
  journal.path_ = path;
  journal.file_ = Descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644));
  if (!journal.file_) return io_error("cannot create the journal", path, errno);
  return kOk;
}

void Journal::line(const char* event, const JsonObject& fields) {
  const std::string text =
      JsonObject().set("event", event).set("seq", seq_).set("t_ns", boottime_ns()).merge(fields).text() + "\n";
  ++seq_;
  if (output_ && write_all(output_.get(), text.data(), text.size(), "standard output"))
    output_ = Descriptor();  // the reader went away; the journal file goes on
  if (!file_) return;
  const Status error = write_all(file_.get(), text.data(), text.size(), path_);
  written_ += text.size();
  if (!failed_) failed_ = error ? error : keep_reserve();
  if (error) file_ = Descriptor();  // no line after half a line
}

// Reserves storage ahead of the end of the file, so that the last line still fits when nothing else does.
Status Journal::keep_reserve() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && written_ + kLastWords > limit.rlim_cur)
    return io_error("the limit on the size of files leaves no room for the journal", path_, EFBIG);
#ifdef FALLOC_FL_KEEP_SIZE
  if (written_ + kLastWords <= reserved_) return kOk;
  const auto begin = static_cast<off_t>(reserved_);
  if (::fallocate(file_.get(), FALLOC_FL_KEEP_SIZE, begin, kReserveStep) == 0) {
    reserved_ += kReserveStep;
  } else if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) {
    return io_error("cannot reserve storage for the journal", path_, errno);
  }
#endif
  return kOk;
}

void Journal::write(const char* event, const JsonObject& fields) {
  const std::lock_guard lock(mutex_);
  if (!finished_) line(event, fields);
}

bool Journal::finish(const char* event, const JsonObject& fields) {
  const std::unique_lock lock(mutex_, kPatience);
  if (!lock.owns_lock() || finished_) return false;
  line(event, fields);
  finished_ = true;
  exit_code_ = std::strcmp(event, "error") == 0 || failed_ ? 1 : 0;
  return true;
}

bool Journal::finish(const Error& error) {
  return finish("error", JsonObject()
                             .set("code", word(error.code))
                             .set("message", error.message)
                             .set("step", error.step));
}

Status Journal::status() {
  const std::lock_guard lock(mutex_);
  return failed_;
}

void Journal::print(const JsonObject& object) {
  const std::string text = object.text() + "\n";
  write_all(output_.get(), text.data(), text.size(), "standard output");
}

void Journal::detach() {
  const std::lock_guard lock(mutex_);
  output_ = Descriptor();
}

}  // namespace pocketfarm
