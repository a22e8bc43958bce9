#include "image.h"

namespace pocketfarm::vulkan {
namespace {

constexpr VkImageSubresourceRange kWhole{VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};

VkFormat format_of(const Image& size) {
  return size.half ? VK_FORMAT_R16G16B16A16_SFLOAT : VK_FORMAT_R32G32B32A32_SFLOAT;
}

Status make_image(const Device& device, const Image& size, DeviceImage& out) {
  VkImageCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO;
  info.imageType = VK_IMAGE_TYPE_2D;
  info.format = format_of(size);
  info.extent = {size.width, size.height, 1};
  info.mipLevels = info.arrayLayers = 1;
  info.samples = VK_SAMPLE_COUNT_1_BIT;
  info.tiling = VK_IMAGE_TILING_OPTIMAL;
  info.usage = VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_STORAGE_BIT;
  VkImage image{};
  if (const VkResult result = device.vk().vkCreateImage(device.handle(), &info, nullptr, &image))
    return vk_error("vkCreateImage of " + std::to_string(size.width) + " x " + std::to_string(size.height) + " texels",
                    result);
  out.image = {device.handle(), image, device.vk().vkDestroyImage};
  return kOk;
}

Status bind_memory(const Device& device, DeviceImage& out) {
  const Library& vk = device.vk();
  VkMemoryRequirements needs{};
  vk.vkGetImageMemoryRequirements(device.handle(), out.image.get(), &needs);
  auto memory = device.allocate(needs, {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0}, "an image");
  if (!memory) return memory.error();
  out.memory = std::move(memory->handle);
  if (const VkResult result = vk.vkBindImageMemory(device.handle(), out.image.get(), out.memory.get(), 0))
    return vk_error("vkBindImageMemory", result);
  return kOk;
}

}  // namespace

Result<DeviceImage> DeviceImage::make(const Device& device, const Image& size) {
  DeviceImage out;
  if (auto error = make_image(device, size, out)) return *error;
  if (auto error = bind_memory(device, out)) return *error;
  VkImageViewCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO;
  info.image = out.image.get();
  info.viewType = VK_IMAGE_VIEW_TYPE_2D;
  info.format = format_of(size);
  info.subresourceRange = kWhole;
  VkImageView view{};
  if (const VkResult result = device.vk().vkCreateImageView(device.handle(), &info, nullptr, &view))
    return vk_error("vkCreateImageView", result);
  out.view = {device.handle(), view, device.vk().vkDestroyImageView};
  return out;
}

void DeviceImage::record_layout(const Device& device, VkCommandBuffer commands) const {
  VkImageMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER;
  barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
  barrier.oldLayout = VK_IMAGE_LAYOUT_UNDEFINED;
  barrier.newLayout = VK_IMAGE_LAYOUT_GENERAL;
  barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
  barrier.image = image.get();
  barrier.subresourceRange = kWhole;
  device.vk().vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 0,
                                   nullptr, 0, nullptr, 1, &barrier);
}

}  // namespace pocketfarm::vulkan
