#include "pipelines.h"

#include <algorithm>
#include <map>

#include "device/cache_file.h"

namespace pocketfarm::vulkan {
namespace {

uint32_t buffers_of(const Program& program) {
  return static_cast<uint32_t>(std::count_if(program.parameters.begin(), program.parameters.end(),
                                             [](const Parameter& p) { return p.kind == Parameter::Kind::buffer; }));
}

VkDescriptorType descriptor_of(const Parameter& parameter) {
  if (parameter.texel != Parameter::Texel::none) return VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER;
  return VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
}

// The types of a program's bindings, in order.
std::vector<VkDescriptorType> descriptors_of(const Program& program) {
  std::vector<VkDescriptorType> out;
  for (const Parameter& parameter : program.parameters)
    if (parameter.kind == Parameter::Kind::buffer) out.push_back(descriptor_of(parameter));
  return out;
}

struct TexelFormat {
  VkFormat format;
  uint64_t bytes;
};

TexelFormat texel_format(Parameter::Texel texel) {
  switch (texel) {
    case Parameter::Texel::rgba32f: return {VK_FORMAT_R32G32B32A32_SFLOAT, 16};
    case Parameter::Texel::rgba16f: return {VK_FORMAT_R16G16B16A16_SFLOAT, 8};
    default: return {VK_FORMAT_R32_SFLOAT, 4};
  }
}

// Specialisation constants: the work-group size and the program's own.
struct Specialisation {
  explicit Specialisation(const Program& program) {
    for (uint32_t i = 0; i < 3; ++i) add(i, program.work_group[i]);
    for (const auto& [id, value] : program.vulkan->constants) add(id, value);
    info.mapEntryCount = static_cast<uint32_t>(entries.size());
    info.pMapEntries = entries.data();
    info.dataSize = values.size() * 4;
    info.pData = values.data();
  }
  void add(uint32_t id, uint32_t value) {
    entries.push_back({id, static_cast<uint32_t>(values.size() * 4), 4});
    values.push_back(value);
  }
  std::vector<VkSpecializationMapEntry> entries;
  std::vector<uint32_t> values;
  VkSpecializationInfo info{};
};

Status check_limits(const Program& program, const VkPhysicalDeviceLimits& limits) {
  const uint32_t buffers = buffers_of(program);
  const uint32_t push_bytes = static_cast<uint32_t>(program.parameters.size() - buffers) * 4;
  if (buffers > limits.maxPerStageDescriptorStorageBuffers)
    return Error{Code::limit, "program `" + program.id + "`: " + std::to_string(buffers) +
                                  " buffers exceed maxPerStageDescriptorStorageBuffers " +
                                  std::to_string(limits.maxPerStageDescriptorStorageBuffers)};
  if (push_bytes > limits.maxPushConstantsSize)
    return Error{Code::limit, "program `" + program.id + "`: " + std::to_string(push_bytes) +
                                  " bytes of scalars exceed maxPushConstantsSize " +
                                  std::to_string(limits.maxPushConstantsSize)};
  return kOk;
}

}  // namespace

Status Pipelines::build(const Bundle& bundle, SetupLog& log) {
  int64_t start_ns = boottime_ns();
  if (auto error = make_modules(bundle)) return error;
  log.record("build", start_ns, std::to_string(modules_.size()) + " shader modules");
  start_ns = boottime_ns();
  bool cached = false;
  if (auto error = make_cache(bundle.plan, cached, log)) return error;
  for (size_t i = 0; i < modules_.size(); ++i)
    if (auto error = make_pipeline(bundle.plan.programs[i], modules_[i].get())) return error;
  log.record("pipeline", start_ns,
             std::to_string(pipelines_.size()) + " pipelines" + (cached ? ", with a pipeline cache" : ""), cached);
  modules_.clear();
  if (!cached && !cache_dir_.empty()) save_cache(bundle.plan, log);
  return kOk;
}

Status Pipelines::make_modules(const Bundle& bundle) {
  for (const Program& program : bundle.plan.programs) {
    const MappedFile& file = bundle.files->at(program.vulkan->file);
    if (auto error = check_spirv(file, program.vulkan->file, device_.physical(), device_.fp16())) return error;
    if (auto error = check_limits(program, device_.physical().properties.limits)) return error;
    VkShaderModuleCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    info.codeSize = file.bytes();
    info.pCode = reinterpret_cast<const uint32_t*>(file.data());
    VkShaderModule module{};
    if (const VkResult result = device_.vk().vkCreateShaderModule(device_.handle(), &info, nullptr, &module))
      return Error{Code::build_failed, vk_error("program `" + program.id + "`: vkCreateShaderModule", result).message};
    modules_.emplace_back(device_.handle(), module, device_.vk().vkDestroyShaderModule);
  }
  return kOk;
}

std::string Pipelines::cache_file(const Plan& plan) const {
  const VkPhysicalDeviceProperties& p = device_.physical().properties;
  const std::string_view uuid(reinterpret_cast<const char*>(p.pipelineCacheUUID), VK_UUID_SIZE);
  return cache_path(cache_dir_, "vulkan",
                    {p.deviceName, std::to_string(p.vendorID), std::to_string(p.deviceID),
                     std::to_string(p.driverVersion), device_.physical().facts.driver, uuid, plan.hash});
}

Status Pipelines::make_cache(const Plan& plan, bool& cached, SetupLog& log) {
  const Result<std::string> loaded = cache_dir_.empty() ? std::string() : load_cached(cache_file(plan));
  if (!loaded) log.warn("pipeline_cache", loaded.error().message);
  const std::string content = loaded ? *loaded : "";
  VkPipelineCacheCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  info.initialDataSize = content.size();
  info.pInitialData = content.data();
  VkPipelineCache cache{};
  if (const VkResult result = device_.vk().vkCreatePipelineCache(device_.handle(), &info, nullptr, &cache))
    return vk_error("vkCreatePipelineCache", result);
  cache_ = {device_.handle(), cache, device_.vk().vkDestroyPipelineCache};
  cached = !content.empty();
  return kOk;
}

void Pipelines::save_cache(const Plan& plan, SetupLog& log) {
  const int64_t start_ns = boottime_ns();
  size_t bytes = 0;
  device_.vk().vkGetPipelineCacheData(device_.handle(), cache_.get(), &bytes, nullptr);
  std::string content(bytes, '\0');
  if (bytes == 0 || device_.vk().vkGetPipelineCacheData(device_.handle(), cache_.get(), &bytes, content.data())) return;
  content.resize(bytes);
  if (const auto error = save_cached(cache_file(plan), content)) log.warn("pipeline_cache", error->message);
  log.record("cache", start_ns, "pipeline cache kept", false, bytes);
}

Status Pipelines::make_layouts(const Program& program, Pipeline& out) {
  const Library& vk = device_.vk();
  const uint32_t buffers = buffers_of(program);
  const std::vector<VkDescriptorType> types = descriptors_of(program);
  std::vector<VkDescriptorSetLayoutBinding> bindings(buffers);
  for (uint32_t i = 0; i < buffers; ++i)
    bindings[i] = {i, types[i], 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
  VkDescriptorSetLayoutCreateInfo set_info{};
  set_info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  set_info.bindingCount = buffers;
  set_info.pBindings = bindings.data();
  VkDescriptorSetLayout set_layout{};
  if (const VkResult result = vk.vkCreateDescriptorSetLayout(device_.handle(), &set_info, nullptr, &set_layout))
    return vk_error("vkCreateDescriptorSetLayout", result);
  out.set_layout = {device_.handle(), set_layout, vk.vkDestroyDescriptorSetLayout};
  out.push_bytes = static_cast<uint32_t>(program.parameters.size() - buffers) * 4;
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, out.push_bytes};
  VkPipelineLayoutCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  info.setLayoutCount = 1;
  info.pSetLayouts = &set_layout;
  info.pushConstantRangeCount = out.push_bytes > 0 ? 1 : 0;
  info.pPushConstantRanges = &range;
  VkPipelineLayout layout{};
  if (const VkResult result = vk.vkCreatePipelineLayout(device_.handle(), &info, nullptr, &layout))
    return vk_error("vkCreatePipelineLayout", result);
  out.layout = {device_.handle(), layout, vk.vkDestroyPipelineLayout};
  return kOk;
}

Status Pipelines::make_pipeline(const Program& program, VkShaderModule module) {
  Pipeline out;
  if (auto error = make_layouts(program, out)) return error;
  const Specialisation specialisation(program);
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &specialisation.info;
  info.layout = out.layout.get();
  VkPipeline pipeline{};
  if (const VkResult result =
          device_.vk().vkCreateComputePipelines(device_.handle(), cache_.get(), 1, &info, nullptr, &pipeline))
    return Error{Code::build_failed, vk_error("program `" + program.id + "`: vkCreateComputePipelines", result).message};
  out.pipeline = {device_.handle(), pipeline, device_.vk().vkDestroyPipeline};
  pipelines_.push_back(std::move(out));
  return kOk;
}

Status Pipelines::make_descriptor_pool(const Plan& plan) {
  uint32_t sets = 0;
  std::map<VkDescriptorType, uint32_t> counts;
  for (const Step& step : plan.steps) {
    if (step.kind != Step::Kind::dispatch) continue;
    sets += 1;
    for (VkDescriptorType type : descriptors_of(plan.programs[step.program])) ++counts[type];
  }
  std::vector<VkDescriptorPoolSize> sizes;
  for (const auto& [type, count] : counts) sizes.push_back({type, count});
  if (sizes.empty()) sizes.push_back({VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1});
  VkDescriptorPoolCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  info.maxSets = std::max(sets, 1u);
  info.poolSizeCount = static_cast<uint32_t>(sizes.size());
  info.pPoolSizes = sizes.data();
  VkDescriptorPool pool{};
  if (const VkResult result = device_.vk().vkCreateDescriptorPool(device_.handle(), &info, nullptr, &pool))
    return vk_error("vkCreateDescriptorPool", result);
  descriptors_ = {device_.handle(), pool, device_.vk().vkDestroyDescriptorPool};
  return kOk;
}

Status Pipelines::bind_step(const Plan& plan, const Step& step, const Memory& memory) {
  const VkDescriptorSetLayout layout = pipelines_[step.program].set_layout.get();
  VkDescriptorSetAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  info.descriptorPool = descriptors_.get();
  info.descriptorSetCount = 1;
  info.pSetLayouts = &layout;
  VkDescriptorSet& set = sets_[step.index];
  if (const VkResult result = device_.vk().vkAllocateDescriptorSets(device_.handle(), &info, &set))
    return vk_error("vkAllocateDescriptorSets", result);
  VkWriteDescriptorSet write{};
  write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
  write.dstSet = set;
  write.descriptorCount = 1;
  const std::vector<Parameter>& parameters = plan.programs[step.program].parameters;
  for (size_t i = 0; i < step.arguments.size(); ++i) {
    if (step.arguments[i].kind != Parameter::Kind::buffer) continue;
    const Buffer& buffer = plan.buffers[step.arguments[i].buffer];
    const VkDescriptorBufferInfo range{memory.pool(buffer.pool), buffer.offset, buffer.bytes};
    VkBufferView view{};
    if (parameters[i].texel != Parameter::Texel::none) {
      const auto made = texels(buffer, parameters[i].texel, memory);
      if (!made) return made.error();
      view = *made;
    }
    write.descriptorType = descriptor_of(parameters[i]);
    write.pBufferInfo = &range;
    write.pTexelBufferView = &view;
    device_.vk().vkUpdateDescriptorSets(device_.handle(), 1, &write, 0, nullptr);
    ++write.dstBinding;
  }
  return kOk;
}

Result<VkBufferView> Pipelines::texels(const Buffer& buffer, Parameter::Texel format, const Memory& memory) {
  Owned<VkBufferView>& known = views_[{&buffer, format}];
  if (known.get() != VkBufferView{}) return known.get();
  const TexelFormat texel = texel_format(format);
  const uint64_t most = device_.physical().properties.limits.maxTexelBufferElements;
  if (buffer.bytes / texel.bytes > most)
    return Error{Code::limit, "buffer `" + buffer.id + "`: " + std::to_string(buffer.bytes / texel.bytes) +
                                  " texels exceed maxTexelBufferElements " + std::to_string(most)};
  VkBufferViewCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO;
  info.buffer = memory.pool(buffer.pool);
  info.format = texel.format;
  info.offset = buffer.offset;
  info.range = buffer.bytes / texel.bytes * texel.bytes;
  VkBufferView view{};
  if (const VkResult result = device_.vk().vkCreateBufferView(device_.handle(), &info, nullptr, &view))
    return vk_error("vkCreateBufferView of buffer `" + buffer.id + "`", result);
  known = {device_.handle(), view, device_.vk().vkDestroyBufferView};
  return view;
}

Status Pipelines::bind(const Plan& plan, const Memory& memory) {
  if (auto error = make_descriptor_pool(plan)) return error;
  sets_.resize(plan.steps.size());
  for (const Step& step : plan.steps)
    if (step.kind == Step::Kind::dispatch)
      if (auto error = bind_step(plan, step, memory)) return error;
  return kOk;
}

}  // namespace pocketfarm::vulkan
