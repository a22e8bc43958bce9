#include "memory.h"

#include <algorithm>
#include <cstring>

namespace pocketfarm::vulkan {
namespace {

constexpr uint64_t kStagingBytes = 16u << 20;
constexpr VkMemoryPropertyFlags kHost = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

MemoryFlags flags_of(Allocation::Place place, bool unified) {
  switch (place) {
    case Allocation::Place::device:
      return {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | (unified ? kHost : 0), VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT};
    case Allocation::Place::upload: return {kHost, kHost};
    case Allocation::Place::readback: return {kHost | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, kHost};
  }
  return {};
}

Result<VkBuffer> make_buffer(const Device& device, uint64_t bytes) {
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_STORAGE_TEXEL_BUFFER_BIT |
               VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  const std::vector<uint32_t> families = device.families();
  if (families.size() > 1) info.sharingMode = VK_SHARING_MODE_CONCURRENT;
  info.queueFamilyIndexCount = static_cast<uint32_t>(families.size());
  info.pQueueFamilyIndices = families.data();
  VkBuffer buffer{};
  if (const VkResult result = device.vk().vkCreateBuffer(device.handle(), &info, nullptr, &buffer))
    return vk_error("vkCreateBuffer of " + std::to_string(bytes) + " bytes", result);
  return buffer;
}

}  // namespace

Result<Allocation> Allocation::make(const Device& device, uint64_t bytes, Place place) {
  const Library& vk = device.vk();
  Allocation out;
  out.bytes = bytes;
  const auto buffer = make_buffer(device, bytes);
  if (!buffer) return buffer.error();
  out.buffer = {device.handle(), *buffer, vk.vkDestroyBuffer};
  VkMemoryRequirements needs{};
  vk.vkGetBufferMemoryRequirements(device.handle(), *buffer, &needs);
  auto memory = device.allocate(needs, flags_of(place, device.physical().facts.unified_memory), "a buffer");
  if (!memory) return memory.error();
  out.memory = std::move(memory->handle);
  if (const VkResult result = vk.vkBindBufferMemory(device.handle(), *buffer, out.memory.get(), 0))
    return vk_error("vkBindBufferMemory", result);
  if ((memory->flags & kHost) != kHost) return out;
  void* mapped = nullptr;
  if (const VkResult result = vk.vkMapMemory(device.handle(), out.memory.get(), 0, VK_WHOLE_SIZE, 0, &mapped))
    return vk_error("vkMapMemory", result);
  out.mapped = static_cast<std::byte*>(mapped);
  return out;
}

Status Memory::allocate(const Plan& plan) {
  for (const Pool& pool : plan.pools)
    if (auto error = add_pool(pool)) return Error{error->code, "pool `" + pool.id + "`: " + error->message};
  swapped_.resize(plan.buffers.size());
  const std::vector<uint64_t> bytes = plan.host_bytes();
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == 0) continue;
    auto made = Allocation::make(device_, bytes[i], Allocation::Place::readback);
    if (!made) return made.error();
    swapped_[i] = std::make_unique<Allocation>(std::move(*made));
  }
  return make_staging();
}

Status Memory::add_pool(const Pool& pool) {
  const auto place = pool.host_visible ? Allocation::Place::readback : Allocation::Place::device;
  auto made = Allocation::make(device_, pool.bytes, place);
  if (!made) return made.error();
  pools_.push_back(std::move(*made));
  bytes_ += pool.bytes;
  return kOk;
}

Status Memory::make_staging() {
  uint64_t largest = 0;
  for (const Allocation& pool : pools_)
    if (pool.mapped == nullptr) largest = std::max(largest, pool.bytes);
  if (largest == 0) return kOk;
  auto made = Allocation::make(device_, std::min(largest, kStagingBytes), Allocation::Place::readback);
  if (!made) return made.error();
  staging_ = std::move(*made);
  const auto commands = device_.command_buffer();
  if (!commands) return commands.error();
  commands_ = *commands;
  return kOk;
}

Status Memory::upload(const Bundle& bundle) {
  for (size_t i = 0; i < bundle.plan.buffers.size(); ++i) {
    const Buffer& buffer = bundle.plan.buffers[i];
    if (buffer.offloaded)
      std::memcpy(swapped_[i]->mapped, bundle.content(buffer), buffer.bytes);
    else if (buffer.blob_offset)
      if (auto error = write(buffer, bundle.content(buffer), buffer.bytes)) return error;
  }
  return kOk;
}

Status Memory::transfer(VkBuffer from, uint64_t from_offset, VkBuffer to, uint64_t to_offset, uint64_t bytes) {
  const auto fill = [&]() -> Status {
    const VkBufferCopy region{from_offset, to_offset, bytes};
    device_.vk().vkCmdCopyBuffer(commands_, from, to, 1, &region);
    VkMemoryBarrier barrier{};
    barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
    device_.vk().vkCmdPipelineBarrier(commands_, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                                      &barrier, 0, nullptr, 0, nullptr);
    return kOk;
  };
  if (auto error = device_.record(commands_, fill)) return error;
  return device_.execute(commands_);
}

Status Memory::write(const Buffer& buffer, const std::byte* data, uint64_t bytes) {
  const Allocation& pool = pools_[buffer.pool];
  if (pool.mapped != nullptr) {
    std::memcpy(pool.mapped + buffer.offset, data, bytes);
    return kOk;
  }
  for (uint64_t at = 0; at < bytes; at += staging_.bytes) {
    const uint64_t part = std::min(staging_.bytes, bytes - at);
    std::memcpy(staging_.mapped, data + at, part);
    if (auto error = transfer(staging_.buffer.get(), 0, pool.buffer.get(), buffer.offset + at, part)) return error;
  }
  return kOk;
}

Status Memory::read(const Buffer& buffer, std::byte* data, uint64_t bytes) {
  const Allocation& pool = pools_[buffer.pool];
  if (pool.mapped != nullptr) {
    std::memcpy(data, pool.mapped + buffer.offset, bytes);
    return kOk;
  }
  for (uint64_t at = 0; at < bytes; at += staging_.bytes) {
    const uint64_t part = std::min(staging_.bytes, bytes - at);
    if (auto error = transfer(pool.buffer.get(), buffer.offset + at, staging_.buffer.get(), 0, part)) return error;
    std::memcpy(data + at, staging_.mapped, part);
  }
  return kOk;
}

}  // namespace pocketfarm::vulkan
