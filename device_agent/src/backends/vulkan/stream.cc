#include "stream.h"

#include <cstring>

#include "device.h"

namespace pocketfarm::vulkan {
namespace {

uint64_t bytes_of(const std::vector<Frames::Item>& items, int64_t frames) {
  uint64_t total = 0;
  for (const Frames::Item& item : items) total += item.bytes * static_cast<uint64_t>(frames);
  return total;
}

}  // namespace

Result<Stream> Stream::make(const Device& device, const Memory& memory, const Frames& frames) {
  Stream stream(device);
  if (!frames.moved) return stream;
  auto inputs = Allocation::make(device, bytes_of(frames.inputs, frames.count), Allocation::Place::upload);
  if (!inputs) return inputs.error();
  auto outputs = Allocation::make(device, bytes_of(frames.outputs, frames.count), Allocation::Place::readback);
  if (!outputs) return outputs.error();
  stream.inputs_ = std::move(*inputs);
  stream.outputs_ = std::move(*outputs);
  if (auto error = stream.record(memory, frames)) return *error;
  return stream;
}

Status Stream::record(const Memory& memory, const Frames& frames) {
  for (const bool in : {true, false})
    for (int64_t frame = 0; frame < frames.count; ++frame) {
      const auto commands = device_.command_buffer();
      if (!commands) return commands.error();
      const auto fill = [&]() -> Status {
        barrier(device_, *commands, in ? Seen::by_device : Seen::by_host);
        uint64_t start = 0;
        for (const Frames::Item& item : in ? frames.inputs : frames.outputs) {
          move(*commands, memory, item, start + static_cast<uint64_t>(frame) * item.bytes, in);
          start += item.bytes * static_cast<uint64_t>(frames.count);
        }
        barrier(device_, *commands, in ? Seen::by_device : Seen::by_host);
        return kOk;
      };
      if (auto error = device_.record(*commands, fill, /*repeated=*/true)) return error;
      (in ? in_ : out_).push_back(*commands);
    }
  return kOk;
}

void Stream::move(VkCommandBuffer commands, const Memory& memory, const Frames::Item& item, uint64_t at, bool in) const {
  const VkBuffer pool = memory.pool(item.buffer->pool);
  const VkBufferCopy region{in ? at : item.buffer->offset, in ? item.buffer->offset : at, item.bytes};
  device_.vk().vkCmdCopyBuffer(commands, in ? inputs_.buffer.get() : pool, in ? pool : outputs_.buffer.get(), 1, &region);
}

Status Stream::run(int count, VkCommandBuffer inference, const Frames& frames) {
  std::vector<VkCommandBuffer> commands;
  for (int i = 0; i < count; ++i) {
    const size_t frame = static_cast<size_t>(i % frames.count);
    if (frames.moved) commands.push_back(in_[frame]);
    commands.push_back(inference);
    if (frames.moved) commands.push_back(out_[frame]);
  }
  std::byte* to = inputs_.mapped;
  for (size_t i = 0; frames.moved && i < frames.inputs.size(); ++i) {
    const uint64_t bytes = frames.inputs[i].bytes * static_cast<uint64_t>(frames.count);
    std::memcpy(to, frames.inputs[i].data, bytes);
    to += bytes;
  }
  if (auto error = device_.execute(commands)) return error;
  const std::byte* from = outputs_.mapped;
  for (size_t i = 0; frames.moved && i < frames.outputs.size(); ++i) {
    const uint64_t bytes = frames.outputs[i].bytes * static_cast<uint64_t>(frames.count);
    std::memcpy(frames.outputs[i].data, from, bytes);
    from += bytes;
  }
  return kOk;
}

}  // namespace pocketfarm::vulkan
