#include "barrier.h"

namespace pocketfarm::vulkan {

void barrier(const Device& device, VkCommandBuffer commands, Seen seen) {
  constexpr VkPipelineStageFlags kWork = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  VkPipelineStageFlags next = kWork;
  VkMemoryBarrier memory{};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  memory.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
                         VK_ACCESS_TRANSFER_WRITE_BIT;
  if (seen == Seen::by_host) {
    memory.dstAccessMask |= VK_ACCESS_HOST_READ_BIT;
    next |= VK_PIPELINE_STAGE_HOST_BIT;
  }
  device.vk().vkCmdPipelineBarrier(commands, kWork, next, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

}  // namespace pocketfarm::vulkan
