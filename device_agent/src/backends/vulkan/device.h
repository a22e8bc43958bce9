// A logical device with its compute queue, and one for swaps where it has queues for transfers.
#pragma once

#include <array>
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

// Of a device without a queue for swaps, one queue takes all; those for swaps may be one.
enum class Queue { compute, swaps_in, swaps_out };

class Device {
 public:
  // Enables 16-bit storage, and half arithmetic where there is any, only where `fp16` asks for it.
  // `swap_queue`: of the environment.
  static Result<std::unique_ptr<Device>> open(const Library& library, PhysicalDevice physical, bool fp16,
                                              const std::string& swap_queue);
  ~Device();
  Device(const Device&) = delete;

  const Library& vk() const { return library_; }
  VkDevice handle() const { return handle_; }
  const PhysicalDevice& physical() const { return physical_; }
  bool fp16() const { return fp16_; }
  bool has_matrix_units() const { return fp16_ && !physical_.facts.matrix_units.empty(); }

  bool has_swap_queue() const { return swap_family_ >= 0; }
  VkQueue queue(Queue which) const { return queues_[static_cast<size_t>(which)]; }
  // Of the queues that use a buffer; one where there is no other.
  std::vector<uint32_t> families() const;

  Result<VkCommandBuffer> command_buffer(Queue queue = Queue::compute) const;
  // Begins, lets `record` fill and ends a command buffer. `repeated`: it may be submitted again while it is pending.
  Status record(VkCommandBuffer commands, const std::function<Status()>& fill, bool repeated = false) const;
  // Submits and waits until the device has finished.
  Status execute(VkCommandBuffer commands) const { return execute(std::vector<VkCommandBuffer>{commands}); }
  // Submits all, in order, and waits for the last.
  Status execute(const std::vector<VkCommandBuffer>& commands) const;
  // Submits nothing but an end after `after`, and waits for it.
  Status finish(VkSubmitInfo after) const;
  // Memory for one buffer, not bound yet. `what` names it in errors.
  Result<DeviceMemory> allocate(const VkMemoryRequirements& needs, MemoryFlags flags, const char* what) const;

 private:
  Device(const Library& library, PhysicalDevice physical, bool fp16, int swap_family)
      : library_(library), physical_(std::move(physical)), fp16_(fp16), swap_family_(swap_family) {}
  Status create();
  Status create_queue_objects();
  uint32_t swap_queues() const;
  Result<Owned<VkCommandPool>> command_pool(uint32_t family) const;
  Status wait() const;
  // Index of a memory type among `allowed` bits, `wanted` first, `needed` at least; -1 where there is none.
  int memory_type(uint32_t allowed, MemoryFlags flags) const;

  const Library& library_;
  const PhysicalDevice physical_;
  const bool fp16_;
  const int swap_family_;  // -1: swaps are steps like others
  VkDevice handle_ = nullptr;
  std::array<VkQueue, 3> queues_{};
  Owned<VkCommandPool> commands_;
  Owned<VkCommandPool> swap_commands_;
  Owned<VkFence> fence_;
};

// Who may see what was written before a barrier.
enum class Seen { by_device, by_host };

// Everything before it is done before anything after it begins. Making writes visible to the host costs more than to
// the next step: an eighth of a small network's time, were each barrier to do it.
void barrier(const Device& device, VkCommandBuffer commands, Seen seen, Queue queue = Queue::compute);

}  // namespace pocketfarm::vulkan
