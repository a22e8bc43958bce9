// Buffers that live on between runs and that nothing fills when a plan is loaded: keys and values of tokens that came before.
#pragma once

#include <vector>

#include "backends/backend.h"

namespace pocketfarm {

// States start as zeros.
inline Status clear_states(const Plan& plan, Backend& backend) {
  for (const Buffer& buffer : plan.buffers)
    if (buffer.variable && !buffer.blob_offset)
      if (auto error = backend.write(buffer, std::vector<std::byte>(buffer.bytes).data(), buffer.bytes)) return error;
  return kOk;
}

}  // namespace pocketfarm
