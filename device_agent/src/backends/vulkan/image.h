// A 2-D image of four channels a texel, with memory of its own; kernels sample it and store to it in layout GENERAL.
#pragma once

#include "plan/plan.h"
#include "device.h"

namespace pocketfarm::vulkan {

struct DeviceImage {
  Owned<VkDeviceMemory> memory;  // freed after the image
  Owned<VkImage> image;
  Owned<VkImageView> view;

  static Result<DeviceImage> make(const Device& device, const Image& size);
  // Records what brings it from nothing into layout GENERAL.
  void record_layout(const Device& device, VkCommandBuffer commands) const;
};

}  // namespace pocketfarm::vulkan
