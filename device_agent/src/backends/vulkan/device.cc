#include "device.h"

#include <algorithm>

#include "physical_device.h"
#include "system/clock.h"

namespace pocketfarm::vulkan {
namespace {

constexpr size_t kSubmitted = 32;  // command buffers at a time: the device starts while the rest is handed over
// Sleeping until the fence's interrupt adds 0.05 to 0.2 ms on a desktop GPU, as much as a small network takes.
constexpr int64_t kPollNs = 20'000'000;

}  // namespace

Result<std::unique_ptr<Device>> Device::open(const Library& library, PhysicalDevice physical, bool fp16,
                                             const std::string& swap_queue) {
  if (fp16 && !physical.storage_16bit)
    return Error{Code::unsupported, "`" + physical.facts.device_name + "` has no 16-bit storage buffers (fp16)"};
  int swaps = -1;
  if (physical.timeline_semaphores)
    swaps = swap_queue == "shared" ? static_cast<int>(physical.queue_family) : physical.transfer_family;
  std::unique_ptr<Device> device(new Device(library, std::move(physical), fp16, swaps));
  if (auto error = device->create()) return *error;
  if (auto error = device->create_queue_objects()) return *error;
  return device;
}

Device::~Device() {
  fence_ = {};
  commands_ = {};
  swap_commands_ = {};
  if (handle_ != nullptr) library_.vkDestroyDevice(handle_, nullptr);
}

Status Device::create() {
  const float priorities[2] = {1, 1};
  std::vector<VkDeviceQueueCreateInfo> queues;
  for (const uint32_t family : families()) {
    queues.emplace_back();
    queues.back().sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queues.back().queueFamilyIndex = family;
    queues.back().queueCount = family == physical_.queue_family ? 1 : swap_queues();
    queues.back().pQueuePriorities = priorities;
  }
  VkPhysicalDeviceShaderFloat16Int8Features float16{};
  float16.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES;
  float16.shaderFloat16 = VK_TRUE;
  VkPhysicalDevice16BitStorageFeatures storage{};
  storage.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES;
  storage.storageBuffer16BitAccess = VK_TRUE;
  if (physical_.shader_float16) storage.pNext = &float16;
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline{};
  timeline.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES;
  timeline.timelineSemaphore = VK_TRUE;
  timeline.pNext = fp16_ ? &storage : nullptr;
  MatrixFeatures matrices;
  VkPhysicalDeviceShaderIntegerDotProductFeatures dots{};
  dots.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES;
  dots.shaderIntegerDotProduct = VK_TRUE;
  std::vector<const char*> extensions;
  VkPhysicalDeviceFeatures basic{};
  basic.shaderInt64 = physical_.facts.int64 ? VK_TRUE : VK_FALSE;
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = has_swap_queue() ? &timeline : timeline.pNext;
  if (has_matrix_units()) {
    info.pNext = matrices.before(info.pNext);
    extensions.push_back(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
  }
  if (!physical_.facts.dot_product.empty()) {
    dots.pNext = const_cast<void*>(info.pNext);
    info.pNext = &dots;
    if (!physical_.dot_product_is_core) extensions.push_back(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
  }
  info.pEnabledFeatures = &basic;
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  info.queueCreateInfoCount = static_cast<uint32_t>(queues.size());
  info.pQueueCreateInfos = queues.data();
  if (const VkResult result = library_.vkCreateDevice(physical_.handle, &info, nullptr, &handle_))
    return vk_error("vkCreateDevice", result);
  return kOk;
}

uint32_t Device::swap_queues() const {
  return static_cast<uint32_t>(swap_family_) == physical_.queue_family ? 1 : std::min(2u, physical_.transfer_queues);
}

std::vector<uint32_t> Device::families() const {
  std::vector<uint32_t> out{physical_.queue_family};
  if (has_swap_queue() && static_cast<uint32_t>(swap_family_) != out[0]) out.push_back(static_cast<uint32_t>(swap_family_));
  return out;
}

Result<Owned<VkCommandPool>> Device::command_pool(uint32_t family) const {
  VkCommandPoolCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  info.queueFamilyIndex = family;
  VkCommandPool pool{};
  if (const VkResult result = library_.vkCreateCommandPool(handle_, &info, nullptr, &pool))
    return vk_error("vkCreateCommandPool", result);
  return Owned<VkCommandPool>(handle_, pool, library_.vkDestroyCommandPool);
}

Status Device::create_queue_objects() {
  library_.vkGetDeviceQueue(handle_, physical_.queue_family, 0, &queues_[0]);
  auto pool = command_pool(physical_.queue_family);
  if (!pool) return pool.error();
  commands_ = std::move(*pool);
  if (has_swap_queue()) {
    for (uint32_t i : {0u, 1u})
      library_.vkGetDeviceQueue(handle_, static_cast<uint32_t>(swap_family_), std::min(i, swap_queues() - 1), &queues_[1 + i]);
    auto swaps = command_pool(static_cast<uint32_t>(swap_family_));
    if (!swaps) return swaps.error();
    swap_commands_ = std::move(*swaps);
  }
  VkFenceCreateInfo fence_info{};
  fence_info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  VkFence fence{};
  if (const VkResult result = library_.vkCreateFence(handle_, &fence_info, nullptr, &fence))
    return vk_error("vkCreateFence", result);
  fence_ = {handle_, fence, library_.vkDestroyFence};
  return kOk;
}

Result<VkCommandBuffer> Device::command_buffer(Queue queue) const {
  VkCommandBufferAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  info.commandPool = (queue != Queue::compute ? swap_commands_ : commands_).get();
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  VkCommandBuffer commands{};
  if (const VkResult result = library_.vkAllocateCommandBuffers(handle_, &info, &commands))
    return vk_error("vkAllocateCommandBuffers", result);
  return commands;
}

Status Device::record(VkCommandBuffer commands, const std::function<Status()>& fill, bool repeated) const {
  VkCommandBufferBeginInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  if (repeated) info.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
  if (const VkResult result = library_.vkBeginCommandBuffer(commands, &info))
    return vk_error("vkBeginCommandBuffer", result);
  if (auto error = fill()) return error;
  if (const VkResult result = library_.vkEndCommandBuffer(commands)) return vk_error("vkEndCommandBuffer", result);
  return kOk;
}

Status Device::execute(const std::vector<VkCommandBuffer>& commands) const {
  const VkFence fence = fence_.get();
  library_.vkResetFences(handle_, 1, &fence);
  for (size_t first = 0; first < commands.size(); first += kSubmitted) {
    const size_t count = std::min(kSubmitted, commands.size() - first);
    VkSubmitInfo info{};
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    info.commandBufferCount = static_cast<uint32_t>(count);
    info.pCommandBuffers = &commands[first];
    const bool last = first + count == commands.size();
    if (const VkResult result = library_.vkQueueSubmit(queue(Queue::compute), 1, &info, last ? fence : VkFence{}))
      return vk_error("vkQueueSubmit", result);
  }
  return wait();
}

Status Device::finish(VkSubmitInfo after) const {
  const VkFence fence = fence_.get();
  library_.vkResetFences(handle_, 1, &fence);
  if (const VkResult result = library_.vkQueueSubmit(queue(Queue::compute), 1, &after, fence)) return vk_error("vkQueueSubmit", result);
  return wait();
}

// A device with memory of its own is polled first; on a phone a polling core would take power and heat from the GPU.
Status Device::wait() const {
  const VkFence fence = fence_.get();
  if (!physical_.facts.unified_memory) {
    const int64_t until_ns = boottime_ns() + kPollNs;
    while (boottime_ns() < until_ns) {
      const VkResult result = library_.vkGetFenceStatus(handle_, fence);
      if (result == VK_SUCCESS) return kOk;
      if (result != VK_NOT_READY) return vk_error("vkGetFenceStatus", result);
    }
  }
  if (const VkResult result = library_.vkWaitForFences(handle_, 1, &fence, VK_TRUE, UINT64_MAX))
    return vk_error("vkWaitForFences", result);
  return kOk;
}

Result<DeviceMemory> Device::allocate(const VkMemoryRequirements& needs, MemoryFlags flags, const char* what) const {
  const int type = memory_type(needs.memoryTypeBits, flags);
  if (type < 0) return Error{Code::unsupported, std::string("no fitting memory type for ") + what};
  VkMemoryAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  info.allocationSize = needs.size;
  info.memoryTypeIndex = static_cast<uint32_t>(type);
  VkDeviceMemory memory{};
  if (const VkResult result = library_.vkAllocateMemory(handle_, &info, nullptr, &memory))
    return vk_error("vkAllocateMemory of " + std::to_string(needs.size) + " bytes for " + what, result);
  return DeviceMemory{{handle_, memory, library_.vkFreeMemory}, physical_.memory.memoryTypes[type].propertyFlags};
}

int Device::memory_type(uint32_t allowed, MemoryFlags flags) const {
  const VkPhysicalDeviceMemoryProperties& memory = physical_.memory;
  for (const VkMemoryPropertyFlags asked : {flags.wanted, flags.needed})
    for (uint32_t i = 0; i < memory.memoryTypeCount; ++i)
      if ((allowed >> i & 1) && (memory.memoryTypes[i].propertyFlags & asked) == asked) return static_cast<int>(i);
  return -1;
}

}  // namespace pocketfarm::vulkan
