// The Vulkan loader, loaded at run time, and owners of its objects.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include "cooperative_matrix_api.h"

#include <string>
#include <utility>

#include "system/status.h"

namespace pocketfarm::vulkan {

#define POCKETFARM_VULKAN_FUNCTIONS(F)                                                                          \
  F(vkDestroyInstance) F(vkEnumeratePhysicalDevices) F(vkGetPhysicalDeviceProperties)                           \
  F(vkGetPhysicalDeviceMemoryProperties) F(vkGetPhysicalDeviceQueueFamilyProperties) F(vkCreateDevice)          \
  F(vkDestroyDevice) F(vkGetDeviceQueue) F(vkCreateBuffer) F(vkDestroyBuffer) F(vkCreateBufferView) F(vkDestroyBufferView) F(vkGetBufferMemoryRequirements)  \
  F(vkAllocateMemory) F(vkFreeMemory) F(vkBindBufferMemory) F(vkMapMemory) F(vkCreateShaderModule)              \
  F(vkDestroyShaderModule) F(vkCreateDescriptorSetLayout) F(vkDestroyDescriptorSetLayout)                       \
  F(vkCreatePipelineLayout) F(vkDestroyPipelineLayout) F(vkCreateComputePipelines) F(vkDestroyPipeline)         \
  F(vkCreatePipelineCache) F(vkDestroyPipelineCache) F(vkGetPipelineCacheData) F(vkCreateDescriptorPool)        \
  F(vkDestroyDescriptorPool) F(vkAllocateDescriptorSets) F(vkUpdateDescriptorSets) F(vkCreateCommandPool)       \
  F(vkDestroyCommandPool) F(vkAllocateCommandBuffers) F(vkBeginCommandBuffer) F(vkEndCommandBuffer)             \
  F(vkCmdBindPipeline) F(vkCmdBindDescriptorSets) F(vkCmdPushConstants) F(vkCmdDispatch) F(vkCmdCopyBuffer)     \
  F(vkCmdPipelineBarrier) F(vkCmdResetQueryPool) F(vkCmdWriteTimestamp) F(vkCreateQueryPool)                    \
  F(vkDestroyQueryPool) F(vkGetQueryPoolResults) F(vkCreateFence) F(vkDestroyFence) F(vkResetFences)            \
  F(vkCreateSemaphore) F(vkDestroySemaphore) F(vkWaitForFences) F(vkGetFenceStatus) F(vkQueueSubmit) F(vkEnumerateDeviceExtensionProperties)
// Absent from Vulkan 1.0, and of an extension.
#define POCKETFARM_VULKAN_11_FUNCTIONS(F)                                   \
  F(vkGetPhysicalDeviceProperties2) F(vkGetPhysicalDeviceFeatures2)         \
  F(vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR)

// Function pointers under the names of the API, and the process's one instance; never unloaded.
struct Library {
#define POCKETFARM_DECLARE(name) PFN_##name name = nullptr;
  POCKETFARM_VULKAN_FUNCTIONS(POCKETFARM_DECLARE)
  POCKETFARM_VULKAN_11_FUNCTIONS(POCKETFARM_DECLARE)
#undef POCKETFARM_DECLARE
  VkInstance instance = nullptr;
  uint32_t instance_version = VK_API_VERSION_1_0;
  std::string path;

  // `no_device` where there is no loader or it makes no instance.
  static Result<const Library*> load();
};

// Owns one object of a device.
template <typename T>
class Owned {
 public:
  using Destroy = void(VKAPI_PTR*)(VkDevice, T, const VkAllocationCallbacks*);  // of its own convention on 32-bit ARM
  Owned() = default;
  Owned(VkDevice device, T object, Destroy destroy) : device_(device), object_(object), destroy_(destroy) {}
  Owned(Owned&& other) noexcept
      : device_(other.device_), object_(std::exchange(other.object_, T{})), destroy_(other.destroy_) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(object_, other.object_);
    std::swap(destroy_, other.destroy_);
    return *this;
  }
  ~Owned() {
    if (object_ != T{}) destroy_(device_, object_, nullptr);
  }
  T get() const { return object_; }

 private:
  VkDevice device_ = nullptr;
  T object_{};
  Destroy destroy_ = nullptr;
};

// An error of a Vulkan call, by its result.
Error vk_error(const std::string& call, VkResult result);

}  // namespace pocketfarm::vulkan
