#include "physical_device.h"

namespace pocketfarm::vulkan {
namespace {

bool has_features(const Library& library, VkPhysicalDevice device) {
  MatrixFeatures wanted;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = const_cast<void*>(wanted.before(nullptr));
  library.vkGetPhysicalDeviceFeatures2(device, &features);
  return wanted.matrices.cooperativeMatrix == VK_TRUE && wanted.memory.vulkanMemoryModel == VK_TRUE;
}

bool adds_halves_in_single(const VkCooperativeMatrixPropertiesKHR& p) {
  return p.AType == VK_COMPONENT_TYPE_FLOAT16_KHR && p.BType == VK_COMPONENT_TYPE_FLOAT16_KHR &&
         p.CType == VK_COMPONENT_TYPE_FLOAT32_KHR && p.ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
         p.scope == VK_SCOPE_SUBGROUP_KHR && p.saturatingAccumulation == VK_FALSE;
}

}  // namespace

MatrixFeatures::MatrixFeatures() {
  matrices.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR;
  matrices.cooperativeMatrix = VK_TRUE;
  memory.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES;
  memory.vulkanMemoryModel = VK_TRUE;
}

const void* MatrixFeatures::before(const void* next) {
  memory.pNext = const_cast<void*>(next);
  matrices.pNext = &memory;
  return &matrices;
}

std::vector<std::string> matrix_units(const Library& library, VkPhysicalDevice device) {
  const auto query = library.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR;
  uint32_t count = 0;
  if (query == nullptr || !has_features(library, device) || query(device, &count, nullptr) != VK_SUCCESS) return {};
  VkCooperativeMatrixPropertiesKHR empty{};
  empty.sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
  std::vector<VkCooperativeMatrixPropertiesKHR> all(count, empty);
  if (query(device, &count, all.data()) != VK_SUCCESS) return {};
  std::vector<std::string> out;
  for (const auto& one : all)
    if (adds_halves_in_single(one))
      out.push_back(std::to_string(one.MSize) + "x" + std::to_string(one.NSize) + "x" + std::to_string(one.KSize));
  return out;
}

}  // namespace pocketfarm::vulkan
