// `phase` events, each written when its phase is over.
#pragma once

#include <cstdint>

#include "system/clock.h"
#include "journal/journal.h"

namespace pocketfarm {

// One phase, from construction to `end`.
class Phase {
 public:
  Phase(Journal& journal, const char* name) : journal_(journal), name_(name) {}

  int64_t start_ns() const { return start_ns_; }
  Status end() {
    const int64_t cpu_ns = process_cpu_ns() - start_cpu_ns_, end_ns = boottime_ns();
    journal_.write("phase", JsonObject().set("phase", name_).set("start_ns", start_ns_).set("end_ns", end_ns).set("cpu_ns", cpu_ns));
    return journal_.status();
  }

 private:
  Journal& journal_;
  const char* name_;
  const int64_t start_ns_ = boottime_ns(), start_cpu_ns_ = process_cpu_ns();
};

}  // namespace pocketfarm
