// A logical device with its one compute queue.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "physical_device.h"

namespace pocketfarm::vulkan {

// Of a type of memory.
struct MemoryFlags {
  VkMemoryPropertyFlags wanted, needed;
};

struct DeviceMemory {
  Owned<VkDeviceMemory> handle;
  VkMemoryPropertyFlags flags = 0;  // of its type
};

class Device {
 public:
  // Enables 16-bit storage, and half arithmetic where there is any, only where `fp16` asks for it.
  static Result<std::unique_ptr<Device>> open(const Library& library, PhysicalDevice physical, bool fp16);
  ~Device();
  Device(const Device&) = delete;

  const Library& vk() const { return library_; }
  VkDevice handle() const { return handle_; }
  const PhysicalDevice& physical() const { return physical_; }
  bool fp16() const { return fp16_; }

  Result<VkCommandBuffer> command_buffer() const;
  // Begins, lets `record` fill and ends a command buffer. `repeated`: it may be submitted again while it is pending.
  Status record(VkCommandBuffer commands, const std::function<Status()>& fill, bool repeated = false) const;
  // Submits and waits until the device has finished.
  Status execute(VkCommandBuffer commands) const { return execute(std::vector<VkCommandBuffer>{commands}); }
  // Submits all, in order, and waits for the last.
  Status execute(const std::vector<VkCommandBuffer>& commands) const;
  // Memory for one buffer or image, not bound yet. `what` names it in errors.
  Result<DeviceMemory> allocate(const VkMemoryRequirements& needs, MemoryFlags flags, const char* what) const;

 private:
  Device(const Library& library, PhysicalDevice physical, bool fp16)
      : library_(library), physical_(std::move(physical)), fp16_(fp16) {}
  Status create();
  Status create_queue_objects();
  Status wait() const;
  // Index of a memory type among `allowed` bits, `wanted` first, `needed` at least; -1 where there is none.
  int memory_type(uint32_t allowed, MemoryFlags flags) const;

  const Library& library_;
  const PhysicalDevice physical_;
  const bool fp16_;
  VkDevice handle_ = nullptr;
  VkQueue queue_ = nullptr;
  Owned<VkCommandPool> commands_;
  Owned<VkFence> fence_;
};

}  // namespace pocketfarm::vulkan
