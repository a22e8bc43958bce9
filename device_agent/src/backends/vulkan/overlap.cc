#include "overlap.h"

namespace pocketfarm::vulkan {

Result<Overlap> Overlap::make(const Device& device, const Plan& plan, const Lanes& lanes, const Recorder& recorder) {
  Overlap out(device);
  out.divide(plan, lanes);
  if (auto error = out.make_semaphores()) return *error;
  for (Part& part : out.parts_) {
    const auto commands = device.command_buffer(part.queue);
    if (!commands) return commands.error();
    part.commands = *commands;
    if (auto error = recorder.record(part.commands, part.steps, part.queue)) return *error;
  }
  return out;
}

// A part begins at a step that waits, and ends after one that is waited for. What a part waits for began before it, so
// submissions in this order never wait for a later one.
void Overlap::divide(const Plan& plan, const Lanes& lanes) {
  constexpr size_t kNone = SIZE_MAX;
  std::array<size_t, kLanes> open{kNone, kNone, kNone};  // of each queue, the part that takes its next step
  std::vector<uint64_t> number(plan.steps.size());
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const size_t lane = lane_of(plan.steps[i]);
    size_t& part = open[lane];
    if (part == kNone || !lanes.waits[i].empty()) {
      part = parts_.size();
      parts_.push_back({static_cast<Queue>(lane), ++count_[lane], {}, {}});
      for (const size_t other : lanes.waits[i]) parts_.back().after[lane_of(plan.steps[other])] = number[other];
    }
    parts_[part].steps.push_back(i);
    number[i] = parts_[part].number;
    if (lanes.awaited[i]) part = kNone;
  }
}

Status Overlap::make_semaphores() {
  for (Owned<VkSemaphore>& made : semaphores_) {
    VkSemaphoreTypeCreateInfo type{};
    type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
    type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
    VkSemaphoreCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
    info.pNext = &type;
    VkSemaphore semaphore{};
    if (const VkResult result = device_->vk().vkCreateSemaphore(device_->handle(), &info, nullptr, &semaphore))
      return vk_error("vkCreateSemaphore", result);
    made = {device_->handle(), semaphore, device_->vk().vkDestroySemaphore};
  }
  return kOk;
}

Status Overlap::submit(const Part& part) const {
  const size_t own = static_cast<size_t>(part.queue);
  const VkSemaphore signal = semaphores_[own].get();
  const uint64_t reached = ended_[own] + part.number;
  VkSemaphore wait[kLanes];
  uint64_t awaited[kLanes];
  VkPipelineStageFlags stages[kLanes];
  uint32_t waits = 0;
  for (size_t other = 0; other < kLanes; ++other) {
    if (part.after[other] == 0) continue;
    wait[waits] = semaphores_[other].get();
    awaited[waits] = ended_[other] + part.after[other];
    stages[waits++] = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
  }
  VkTimelineSemaphoreSubmitInfo values{};
  values.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  values.waitSemaphoreValueCount = waits;
  values.pWaitSemaphoreValues = awaited;
  values.signalSemaphoreValueCount = 1;
  values.pSignalSemaphoreValues = &reached;
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.pNext = &values;
  info.waitSemaphoreCount = waits;
  info.pWaitSemaphores = wait;
  info.pWaitDstStageMask = stages;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &part.commands;
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &signal;
  if (const VkResult result = device_->vk().vkQueueSubmit(device_->queue(part.queue), 1, &info, VkFence{}))
    return vk_error("vkQueueSubmit", result);
  return kOk;
}

Status Overlap::run() {
  for (const Part& part : parts_)
    if (auto error = submit(part)) return error;
  VkSemaphore all[kLanes];
  VkPipelineStageFlags stages[kLanes];
  for (size_t queue = 0; queue < kLanes; ++queue) {
    ended_[queue] += count_[queue];
    all[queue] = semaphores_[queue].get();
    stages[queue] = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
  }
  VkTimelineSemaphoreSubmitInfo values{};
  values.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  values.waitSemaphoreValueCount = kLanes;
  values.pWaitSemaphoreValues = ended_.data();
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.pNext = &values;
  info.waitSemaphoreCount = kLanes;
  info.pWaitSemaphores = all;
  info.pWaitDstStageMask = stages;
  return device_->finish(info);
}

}  // namespace pocketfarm::vulkan
