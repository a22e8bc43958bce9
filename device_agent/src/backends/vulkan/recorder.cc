#include "recorder.h"

#include <cstring>
#include <numeric>

#include "device.h"
#include "ordering/order.h"

namespace pocketfarm::vulkan {

Status Recorder::record(VkCommandBuffer commands, size_t begin, size_t end) const {
  std::vector<size_t> steps(end - begin);
  std::iota(steps.begin(), steps.end(), begin);
  return record(commands, steps, Queue::compute);
}

Status Recorder::record(VkCommandBuffer commands, const std::vector<size_t>& steps, Queue queue) const {
  const auto fill = [&]() -> Status {
    Hazards hazards;
    barrier(device_, commands, Seen::by_device, queue);
    for (const size_t i : steps) {
      const Step& step = plan_.steps[i];
      if (hazards.add(accesses(plan_, step))) barrier(device_, commands, Seen::by_device, queue);
      record_step(commands, step);
    }
    barrier(device_, commands, Seen::by_host, queue);
    return kOk;
  };
  return device_.record(commands, fill, /*repeated=*/true);
}

void Recorder::record_step(VkCommandBuffer commands, const Step& step) const {
  if (step.kind == Step::Kind::dispatch) return dispatch(commands, step);
  copy(commands, step);
}

void Recorder::copy(VkCommandBuffer commands, const Step& step) const {
  const Buffer& source = plan_.buffers[step.source];
  const VkBuffer pool = memory_.pool(source.pool), host = memory_.swapped(step.target);
  if (step.kind == Step::Kind::copy) {
    const Buffer& target = plan_.buffers[step.target];
    const VkBufferCopy region{source.offset + step.source_offset, target.offset + step.target_offset, step.bytes};
    device_.vk().vkCmdCopyBuffer(commands, pool, memory_.pool(target.pool), 1, &region);
  } else if (step.kind == Step::Kind::swap_out) {
    const VkBufferCopy region{source.offset, 0, step.bytes};
    device_.vk().vkCmdCopyBuffer(commands, pool, host, 1, &region);
  } else {
    const VkBufferCopy region{0, source.offset, step.bytes};
    device_.vk().vkCmdCopyBuffer(commands, host, pool, 1, &region);
  }
}

Extent Recorder::groups(const Step& step) const {
  const Extent& group = plan_.programs[step.program].work_group;
  Extent out{};
  for (int i = 0; i < 3; ++i) out[i] = static_cast<uint32_t>((uint64_t{step.work_items[i]} + group[i] - 1) / group[i]);
  return out;
}

void Recorder::dispatch(VkCommandBuffer commands, const Step& step) const {
  const Library& vk = device_.vk();
  const Pipeline& pipeline = pipelines_.of_program(step.program);
  const VkPipelineLayout layout = pipeline.layout.get();
  const VkDescriptorSet set = pipelines_.of_step(step);
  vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.pipeline.get());
  vk.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &set, 0, nullptr);
  uint32_t scalars[32];
  uint32_t count = 0;
  for (const Argument& argument : step.arguments) {
    if (argument.kind == Parameter::Kind::i32) std::memcpy(&scalars[count++], &argument.i32, 4);
    if (argument.kind == Parameter::Kind::f32) std::memcpy(&scalars[count++], &argument.f32, 4);
  }
  if (count > 0) vk.vkCmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, count * 4, scalars);
  const Extent size = groups(step);
  vk.vkCmdDispatch(commands, size[0], size[1], size[2]);
}

Status Recorder::check_dispatches() const {
  const uint32_t* limits = device_.physical().properties.limits.maxComputeWorkGroupCount;
  for (const Step& step : plan_.steps) {
    if (step.kind != Step::Kind::dispatch) continue;
    const Extent size = groups(step);
    for (int i = 0; i < 3; ++i)
      if (size[i] > limits[i])
        return Error{Code::limit, "step " + std::to_string(step.index) + ": " + std::to_string(size[i]) +
                                      " work-groups in dimension " + std::to_string(i) + " exceed maxComputeWorkGroupCount " +
                                      std::to_string(limits[i]) + " by " + std::to_string(size[i] - limits[i]),
                     step.layer};
  }
  return kOk;
}

}  // namespace pocketfarm::vulkan
