// A request to a resident agent: one JSON object a line.
#pragma once

#include <cstdint>
#include <string>

#include "system/status.h"

namespace pocketfarm {

struct Request {
  int64_t id = 0;
  std::string network;      // one of those that are loaded; empty: none computes, the time is held
  int64_t count = 1;        // inferences, back to back
  int64_t prompt = 0;       // of a network that generates: tokens of its text that are read
  int64_t generate = 0;     // and tokens of the answer
  int64_t hold_ns = 0;      // without a network: take so long
  int64_t deadline_ns = 0;  // CLOCK_BOOTTIME; not begun later than this. 0: none
};

// `usage` where the line is no such object.
Result<Request> parse_request(const std::string& line);

}  // namespace pocketfarm
