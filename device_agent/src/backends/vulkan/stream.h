// Inferences back to back: what is moved in and out between them waits in host memory, so that the queue never waits.
#pragma once

#include <vector>

#include "plan/frames.h"
#include "memory.h"

namespace pocketfarm::vulkan {

class Stream {
 public:
  // Records the copies of every frame; without frames to move there is nothing to record.
  static Result<Stream> make(const Device& device, const Memory& memory, const Frames& frames);
  // Copies in, `inference` and copies out `count` times, in one go.
  Status run(int count, VkCommandBuffer inference, const Frames& frames);

 private:
  explicit Stream(const Device& device) : device_(device) {}
  Status record(const Memory& memory, const Frames& frames);
  void move(VkCommandBuffer commands, const Memory& memory, const Frames::Item& item, uint64_t at, bool in) const;

  const Device& device_;
  Allocation inputs_, outputs_;  // item by item, each with all its frames
  std::vector<VkCommandBuffer> in_, out_;  // by frame
};

}  // namespace pocketfarm::vulkan
