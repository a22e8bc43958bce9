#include "device.h"

namespace pocketfarm::vulkan {

void barrier(const Device& device, VkCommandBuffer commands, Seen seen, Queue queue) {
  const bool computes = queue == Queue::compute;  // the other may be for transfers only
  const VkPipelineStageFlags work = VK_PIPELINE_STAGE_TRANSFER_BIT | (computes ? VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT : 0);
  VkPipelineStageFlags next = work;
  VkMemoryBarrier memory{};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT | (computes ? VK_ACCESS_SHADER_WRITE_BIT : 0);
  memory.dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT |
                         (computes ? VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT : 0);
  if (seen == Seen::by_host) {
    memory.dstAccessMask |= VK_ACCESS_HOST_READ_BIT;
    next |= VK_PIPELINE_STAGE_HOST_BIT;
  }
  device.vk().vkCmdPipelineBarrier(commands, work, next, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

}  // namespace pocketfarm::vulkan
