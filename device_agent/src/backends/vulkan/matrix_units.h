// Products of small matrices that a subgroup computes at once (VK_KHR_cooperative_matrix).
#pragma once

#include <string>
#include <vector>

#include "library.h"

namespace pocketfarm::vulkan {

// "rows x columns x depth" of those of halves that are added up in single; none where the device lacks the extension, its
// feature or Vulkan's memory model, which its shaders need. In the driver's order.
std::vector<std::string> matrix_units(const Library& library, VkPhysicalDevice device);

// The features that shaders with such products need; linked into what makes a device.
struct MatrixFeatures {
  MatrixFeatures();
  MatrixFeatures(const MatrixFeatures&) = delete;
  // Puts them in front of a chain of features.
  const void* before(const void* next);

  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrices{};
  VkPhysicalDeviceVulkanMemoryModelFeatures memory{};
};

}  // namespace pocketfarm::vulkan
