// Records a plan's steps into command buffers.
#pragma once

#include "plan/plan.h"
#include "memory.h"
#include "pipelines.h"

namespace pocketfarm::vulkan {

class Recorder {
 public:
  Recorder(const Plan& plan, const Device& device, const Memory& memory, const Pipelines& pipelines)
      : plan_(plan), device_(device), memory_(memory), pipelines_(pipelines) {}

  // Steps [begin, end), with barriers between dependent ones only.
  Status record(VkCommandBuffer commands, size_t begin, size_t end) const;
  // The same of any steps of one queue, in order.
  Status record(VkCommandBuffer commands, const std::vector<size_t>& steps, Queue queue) const;
  // One step without barriers.
  void record_step(VkCommandBuffer commands, const Step& step) const;
  // `limit` where a dispatch needs more work-groups than the device allows.
  Status check_dispatches() const;

 private:
  void dispatch(VkCommandBuffer commands, const Step& step) const;
  void copy(VkCommandBuffer commands, const Step& step) const;
  Extent groups(const Step& step) const;

  const Plan& plan_;
  const Device& device_;
  const Memory& memory_;
  const Pipelines& pipelines_;
};

}  // namespace pocketfarm::vulkan
