// `phase` events, each written when its phase is over.
#pragma once

#include <cstdint>
#include <vector>

#include "system/clock.h"
#include "system/counts.h"
#include "journal/journal.h"

namespace pocketfarm {

// One phase, from construction to `end`.
class Phase {
 public:
  Phase(Journal& journal, const char* name) : journal_(journal), name_(name) {}

  int64_t start_ns() const { return start_ns_; }
  Status end() {
    const std::vector<Count> ended = process_counts();
    const int64_t end_ns = boottime_ns();
    JsonObject counts;
    for (size_t i = 0; i < ended.size(); ++i) counts.set(ended[i].name, ended[i].value - started_[i].value);
    journal_.write("phase", JsonObject().set("phase", name_).set("start_ns", start_ns_).set("end_ns", end_ns).set("counts", counts));
    return journal_.status();
  }

 private:
  Journal& journal_;
  const char* name_;
  const int64_t start_ns_ = boottime_ns();
  const std::vector<Count> started_ = process_counts();
};

}  // namespace pocketfarm
