// The agent's event lines: to standard output and, where wanted, to a journal file.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "system/clock.h"
#include "system/files.h"
#include "json_object.h"
#include "system/status.h"

namespace pocketfarm {

// Thread-safe. After `result` or `error` was written (`finish`), nothing else is. Lines keep their order.
class Journal {
 public:
  // Opens the file (emptied) where `path` is not empty, and takes standard output over: what a driver
  // prints there afterwards goes to standard error.
  static Status open(const std::string& path, Journal& journal);

  Journal() = default;
  Journal(const Journal&) = delete;

  // Written at once, with all that was noted before.
  void write(const char* event, const JsonObject& fields);
  // For events that come often: kept in memory, and written with the next line that is written, by `flush_after`, or
  // when there are 16 KiB of them.
  void note(const char* event, const JsonObject& fields, int64_t t_ns = boottime_ns());
  // Writes what was noted, if nothing was written for `pause_ns`.
  void flush_after(int64_t pause_ns);
  // Writes the last line. False where another thread has already done so, or hangs in a write.
  bool finish(const char* event, const JsonObject& fields);
  bool finish(const Error& error);
  // The first failure to write to the journal file: the run must end with it.
  Status status();
  // Exit status that belongs to the last line.
  int exit_code() const { return exit_code_; }
  // A line on standard output that is no event.
  void print(const JsonObject& object);
  // Lines go to the journal file alone from now on.
  void detach();

 private:
  void append(const char* event, const JsonObject& fields, int64_t t_ns);
  void flush(uint64_t kept_free);
  void write_file(std::string_view lines);
  Status reserve(uint64_t end);

  std::timed_mutex mutex_;
  Descriptor output_;
  Descriptor file_;
  std::string path_;
  std::string noted_;  // lines that are not written yet
  int64_t flushed_ns_ = 0;
  uint64_t seq_ = 0;
  uint64_t written_ = 0;   // bytes in the file
  uint64_t reserved_ = 0;  // bytes of storage that the file holds
  bool finished_ = false;
  std::atomic<int> exit_code_{1};
  Status failed_;
};

// Waits until another run's journal has no writer, without looking again and again, at most `wait_ms`; then writes the file's
// bytes from `offset` on to standard output. True where it has ended: its lock on the journal goes with it, however it ended.
Result<bool> follow_journal(const std::string& path, int64_t offset, int wait_ms);

}  // namespace pocketfarm
