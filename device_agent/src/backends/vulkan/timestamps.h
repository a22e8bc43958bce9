// Device time of single steps by timestamp queries.
#pragma once

#include <vector>

#include "device.h"

namespace pocketfarm::vulkan {

class Timestamps {
 public:
  static constexpr uint32_t kPairs = 512;

  explicit Timestamps(const Device& device) : device_(device) {}
  // `unsupported` where the queue has no timestamps.
  Status make();
  void reset(VkCommandBuffer commands) const { device_.vk().vkCmdResetQueryPool(commands, pool_.get(), 0, 2 * kPairs); }
  void write(VkCommandBuffer commands, uint32_t query) const {
    device_.vk().vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool_.get(), query);
  }
  // Durations in ns between queries 2i and 2i + 1.
  Result<std::vector<int64_t>> durations(uint32_t pairs) const;

 private:
  const Device& device_;
  Owned<VkQueryPool> pool_;
};

}  // namespace pocketfarm::vulkan
