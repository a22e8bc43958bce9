// Compute pipelines of a plan's programs, and the descriptor sets of its dispatches.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plan/bundle.h"
#include "journal/setup_log.h"
#include "device.h"
#include "memory.h"
#include "system/files.h"
#include "physical_device.h"

namespace pocketfarm::vulkan {

struct Pipeline {
  Owned<VkDescriptorSetLayout> set_layout;
  Owned<VkPipelineLayout> layout;
  Owned<VkPipeline> pipeline;
  uint32_t push_bytes = 0;
};

class Pipelines {
 public:
  Pipelines(const Device& device, std::string cache_dir) : device_(device), cache_dir_(std::move(cache_dir)) {}

  // Shader modules (step `build`), then pipelines (step `pipeline`).
  Status build(const Bundle& bundle, SetupLog& log);
  // One descriptor set for each dispatch of the plan.
  Status bind(const Plan& plan, const Memory& memory);

  const Pipeline& of_program(size_t program) const { return pipelines_[program]; }
  VkDescriptorSet of_step(const Step& step) const { return sets_[step.index]; }

 private:
  Status make_modules(const Bundle& bundle);
  Status make_cache(const Plan& plan, bool& cached, SetupLog& log);
  Status make_pipeline(const Program& program, VkShaderModule module);
  Status make_layouts(const Program& program, Pipeline& out);
  Status make_descriptor_pool(const Plan& plan);
  Status bind_step(const Plan& plan, const Step& step, const Memory& memory);
  Result<VkBufferView> texels(const Buffer& buffer, Parameter::Texel format, const Memory& memory);
  std::string cache_file(const Plan& plan) const;
  void save_cache(const Plan& plan, SetupLog& log);

  const Device& device_;
  const std::string cache_dir_;
  std::vector<Owned<VkShaderModule>> modules_;  // by program, until the pipelines are made
  Owned<VkPipelineCache> cache_;
  std::vector<Pipeline> pipelines_;
  Owned<VkDescriptorPool> descriptors_;
  std::vector<VkDescriptorSet> sets_;
  std::map<std::pair<const Buffer*, Parameter::Texel>, Owned<VkBufferView>> views_;
};

// What a SPIR-V module asks of the device, read from its header and OpCapability instructions.
// `plan_invalid` for what is no module, `unsupported` for a version or capability that the device lacks.
Status check_spirv(const MappedFile& module, const std::string& file, const PhysicalDevice& device, bool fp16);

}  // namespace pocketfarm::vulkan
