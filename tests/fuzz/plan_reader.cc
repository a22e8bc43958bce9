// The agent's reader of plans under libFuzzer; it must return, and read nothing that is not its own.
#include <cstdint>
#include <string>

#include "plan/plan.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto plan = pocketfarm::parse_plan(std::string(reinterpret_cast<const char*>(data), size));
  (void)plan;
  return 0;
}
