// Says when the phone has become too hot to go on.
#pragma once

#include "readings.h"
#include "journal/journal.h"

namespace pocketfarm {

class HeatGate {
 public:
  // `limit_dc`: tenths of a degree Celsius; 0: never too hot. Warns where there is a limit and no temperature can be read.
  HeatGate(Journal& journal, const std::string& sysroot, int limit_dc);
  // Whether skin or battery were hotter than the limit at some look. Looks every 100 ms at most.
  bool is_hot();
  // What was hot, and how hot; empty where nothing was.
  std::string what() const;

 private:
  Journal& journal_;
  const int limit_dc_;
  Battery battery_;
  Skin skin_;
  int64_t looked_ns_ = 0, seen_dc_ = 0;
  const char* hot_ = nullptr;  // what was hot
};

}  // namespace pocketfarm
