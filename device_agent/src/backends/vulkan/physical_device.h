// Vulkan devices and what they offer.
#pragma once

#include <string>
#include <vector>

#include "device/facts.h"
#include "library.h"

namespace pocketfarm::vulkan {

struct PhysicalDevice {
  VkPhysicalDevice handle;
  VkPhysicalDeviceProperties properties;
  VkPhysicalDeviceMemoryProperties memory;
  bool storage_16bit = false;
  bool shader_float16 = false;
  VkSubgroupFeatureFlags subgroup_operations = 0;  // in compute shaders
  uint32_t queue_family = 0;
  uint32_t timestamp_bits = 0;
  int transfer_family = -1;  // of queues that do nothing but transfers, beside those that compute; -1: none
  uint32_t transfer_queues = 0;  // of that family
  bool timeline_semaphores = false;
  bool dot_product_is_core = false;  // else of VK_KHR_shader_integer_dot_product, where the facts have it
  ApiFacts facts;

  // The version that both the device and the instance speak.
  uint32_t version = VK_API_VERSION_1_0;
};

// Every device with a compute queue: discrete and integrated GPUs first, CPUs last; `no_device` where there is none.
Result<std::vector<PhysicalDevice>> list_devices(const Library& library);

// Products of small matrices that a subgroup computes at once (VK_KHR_cooperative_matrix).
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
