// `setup` events: each step's start and duration.
#pragma once

#include <cstdint>
#include <string>

#include "system/clock.h"
#include "journal.h"

namespace pocketfarm {

class SetupLog {
 public:
  explicit SetupLog(Journal& journal) : journal_(&journal) {}
  SetupLog() = default;  // tells nobody

  void record(const char* step, int64_t start_ns, const std::string& detail = "", bool cached = false,
              uint64_t bytes = 0) {
    if (journal_ == nullptr) return;
    journal_->write("setup", JsonObject()
                                 .set("step", step)
                                 .set("start_ns", start_ns)
                                 .set("duration_ns", boottime_ns() - start_ns)
                                 .set("detail", detail)
                                 .set("cached", cached)
                                 .set("bytes", bytes));
  }
  void warn(const char* code, const std::string& message) {
    if (journal_ != nullptr) journal_->write("warning", JsonObject().set("code", code).set("message", message));
  }

 private:
  Journal* journal_ = nullptr;
};

}  // namespace pocketfarm
