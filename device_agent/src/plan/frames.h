// What the inferences of a stream take and leave, in host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan.h"

namespace pocketfarm {

// Inference i takes frame i % count of every input and leaves frame i % count of every output.
struct Frames {
  struct Item {
    const Buffer* buffer = nullptr;
    std::byte* data = nullptr;  // `count` frames, one behind the other
    uint64_t bytes = 0;         // of one frame
    std::byte* frame(int64_t index) const { return data + static_cast<uint64_t>(index) * bytes; }
  };

  int64_t count = 1;
  bool moved = false;  // false: all take what is in the inputs' buffers, which nothing overwrites, and outputs stay there
  std::vector<Item> inputs, outputs;
};

}  // namespace pocketfarm
