#include "status.h"

namespace pocketfarm {

const char* word(Code code) {
  switch (code) {
    case Code::usage: return "usage";
    case Code::plan_invalid: return "plan_invalid";
    case Code::limit: return "limit";
    case Code::no_device: return "no_device";
    case Code::unsupported: return "unsupported";
    case Code::build_failed: return "build_failed";
    case Code::out_of_memory: return "out_of_memory";
    case Code::device_error: return "device_error";
    case Code::io: return "io";
    case Code::storage_full: return "storage_full";
    case Code::deadline: return "deadline";
    case Code::cancelled: return "cancelled";
    case Code::power_contaminated: return "power_contaminated";
    case Code::too_hot: return "too_hot";
    case Code::program_failed: return "program_failed";
    case Code::internal: return "internal";
  }
  return "internal";
}

}  // namespace pocketfarm
