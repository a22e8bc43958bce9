// The agent's event lines: to standard output and, where wanted, to a journal file; flushed line by line.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "files.h"
#include "json_object.h"
#include "status.h"

namespace pocketfarm {

// Thread-safe. After `result` or `error` was written (`finish`), nothing else is.
class Journal {
 public:
  // Opens the file (emptied) where `path` is not empty, and takes standard output over: what a driver
  // prints there afterwards goes to standard error.
  static Status open(const std::string& path, Journal& journal);

  Journal() = default;
  Journal(const Journal&) = delete;

  void write(const char* event, const JsonObject& fields);
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
  void line(const char* event, const JsonObject& fields);
  Status keep_reserve();

  std::timed_mutex mutex_;
  Descriptor output_;
  Descriptor file_;
  std::string path_;
  uint64_t seq_ = 0;
  uint64_t written_ = 0;   // bytes in the file
  uint64_t reserved_ = 0;  // bytes of storage that the file holds
  bool finished_ = false;
  std::atomic<int> exit_code_{1};
  Status failed_;
};

}  // namespace pocketfarm
