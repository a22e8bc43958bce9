#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace pocketfarm {
namespace {

constexpr uint64_t kLastWords = 8192;     // storage kept free for the line that says that the storage is full
constexpr uint64_t kReserveStep = 65536;  // reserved at a time
constexpr size_t kMostNoted = 16384;  // below what a pipe takes at once
constexpr auto kPatience = std::chrono::seconds(2);

}  // namespace

Status Journal::open(const std::string& path, Journal& journal) {
  journal.output_ = Descriptor(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  if (path.empty()) return kOk;
  journal.path_ = path;
  journal.file_ = Descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644));
  if (!journal.file_) return io_error("cannot create the journal", path, errno);
  if (::flock(journal.file_.get(), LOCK_EX | LOCK_NB) != 0)  // who follows the run waits for it
    return io_error("cannot lock the journal: another run may write it", path, errno);
  return kOk;
}

void Journal::append(const char* event, const JsonObject& fields, int64_t t_ns) {
  noted_ += JsonObject().set("event", event).set("seq", seq_).set("t_ns", t_ns).merge(fields).text() + "\n";
  ++seq_;
}

// Writes the noted lines, or where the storage is full those that leave `kept_free` bytes of what is reserved.
void Journal::flush(uint64_t kept_free) {
  std::string_view lines = noted_;
  if (file_ && !failed_) failed_ = reserve(written_ + lines.size() + kept_free);
  if (file_ && failed_ && reserved_ > 0) {
    const uint64_t room = reserved_ - std::min(reserved_, written_ + kept_free);
    if (lines.size() > room) lines = lines.substr(0, lines.substr(0, room).rfind('\n') + 1);
    const auto dropped = noted_.begin() + static_cast<std::ptrdiff_t>(lines.size());
    seq_ -= static_cast<uint64_t>(std::count(dropped, noted_.end(), '\n'));
  }
  if (file_) write_file(lines);  // first: who reads standard output may be slow
  if (output_ && write_all(output_.get(), lines.data(), lines.size(), "standard output"))
    output_ = Descriptor();  // the reader went away; the journal file goes on
  noted_.clear();
  flushed_ns_ = boottime_ns();
}

void Journal::write_file(std::string_view lines) {
  const Status error = write_all(file_.get(), lines.data(), lines.size(), path_);
  written_ += lines.size();
  if (!failed_) failed_ = error;
  if (error) file_ = Descriptor();  // no line after half a line
}

// Reserves storage ahead of the end of the file, so that the last line still fits when nothing else does.
Status Journal::reserve(uint64_t end) {
#ifdef FALLOC_FL_KEEP_SIZE
  if (end <= reserved_) return kOk;
  rlimit limit{};  // fallocate does not heed it
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && end > limit.rlim_cur)
    return io_error("the limit on the size of files leaves no room for the journal", path_, EFBIG);
  const uint64_t bytes = (end - reserved_ + kReserveStep - 1) / kReserveStep * kReserveStep;
  if (::fallocate(file_.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(reserved_), static_cast<off_t>(bytes)) == 0) {
    reserved_ += bytes;
  } else if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) {
    return io_error("cannot reserve storage for the journal", path_, errno);
  }
#endif
  return kOk;
}

void Journal::write(const char* event, const JsonObject& fields) {
  const std::lock_guard lock(mutex_);
  if (finished_) return;
  append(event, fields, boottime_ns());
  flush(kLastWords);
}

void Journal::note(const char* event, const JsonObject& fields, int64_t t_ns) {
  const std::lock_guard lock(mutex_);
  if (finished_) return;
  append(event, fields, t_ns);
  if (noted_.size() >= kMostNoted) flush(kLastWords);
}

void Journal::flush_after(int64_t pause_ns) {
  const std::lock_guard lock(mutex_);
  if (!noted_.empty() && boottime_ns() - flushed_ns_ >= pause_ns) flush(kLastWords);
}

bool Journal::finish(const char* event, const JsonObject& fields) {
  const std::unique_lock lock(mutex_, kPatience);
  if (!lock.owns_lock() || finished_) return false;
  if (!noted_.empty()) flush(kLastWords);
  append(event, fields, boottime_ns());
  flush(0);
  finished_ = true;
  exit_code_ = std::strcmp(event, "error") == 0 || failed_ ? 1 : 0;
  return true;
}

bool Journal::finish(const Error& error) {
  JsonObject fields;
  fields.set("code", word(error.code)).set("message", error.message).set("step", error.step);
  if (!error.refused.kernel.empty())
    fields.set("kernel", error.refused.kernel)
        .set("work_group", error.refused.work_group)
        .set("work_group_limit", error.refused.allowed);
  return finish("error", fields);
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
