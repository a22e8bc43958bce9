// The pools of a plan on a Vulkan device, host memory for what is swapped out, and transfers.
#pragma once

#include <memory>
#include <vector>

#include "plan/bundle.h"
#include "device.h"

namespace pocketfarm::vulkan {

// One VkBuffer with its own memory; mapped where the host can see it.
struct Allocation {
  Owned<VkDeviceMemory> memory;  // freed after the buffer
  Owned<VkBuffer> buffer;
  std::byte* mapped = nullptr;
  uint64_t bytes = 0;

  enum class Place { device, upload, readback };
  static Result<Allocation> make(const Device& device, uint64_t bytes, Place place);
};

class Memory {
 public:
  explicit Memory(const Device& device) : device_(device) {}

  Status allocate(const Plan& plan);
  Status upload(const Bundle& bundle);
  // Through a staging buffer where the host cannot see the pool; returns when done.
  Status write(const Buffer& buffer, const std::byte* data, uint64_t bytes);
  Status read(const Buffer& buffer, std::byte* data, uint64_t bytes);

  VkBuffer pool(size_t index) const { return pools_[index].buffer.get(); }
  // Where a swapped buffer's content waits; null where the plan never swaps it.
  VkBuffer swapped(size_t buffer) const { return swapped_[buffer] ? swapped_[buffer]->buffer.get() : VkBuffer{}; }
  uint64_t bytes() const { return bytes_; }

 private:
  Status transfer(VkBuffer from, uint64_t from_offset, VkBuffer to, uint64_t to_offset, uint64_t bytes);
  Status make_staging();

  const Device& device_;
  Status add_pool(const Pool& pool);

  std::vector<Allocation> pools_;
  std::vector<std::unique_ptr<Allocation>> swapped_;
  Allocation staging_;
  VkCommandBuffer commands_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace pocketfarm::vulkan
