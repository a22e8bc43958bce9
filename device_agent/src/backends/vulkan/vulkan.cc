#include "backends/open.h"

#include <optional>

#include "device.h"
#include "library.h"
#include "memory.h"
#include "overlap.h"
#include "pipelines.h"
#include "recorder.h"
#include "stream.h"
#include "timestamps.h"

namespace pocketfarm {
namespace vulkan {
namespace {

class VulkanBackend final : public Backend {
 public:
  VulkanBackend(std::unique_ptr<Device> device, const std::string& cache_dir)
      : device_(std::move(device)), memory_(*device_), pipelines_(*device_, cache_dir) {}

  const ApiFacts& facts() const override { return device_->physical().facts; }
  Status prepare(const Bundle& bundle, SetupLog& log) override;
  Status write(const Buffer& buffer, const void* data, uint64_t bytes) override {
    return memory_.write(buffer, static_cast<const std::byte*>(data), bytes);
  }
  Status read(const Buffer& buffer, void* data, uint64_t bytes) override {
    return memory_.read(buffer, static_cast<std::byte*>(data), bytes);
  }
  Status run() override { return overlap_ ? overlap_->run() : device_->execute(inference_); }
  Status run_batches(const Stage& stage, int64_t count) override {
    const VkCommandBuffer commands = stages_[static_cast<size_t>(&stage - plan_->stages.data())];
    return device_->execute(std::vector<VkCommandBuffer>(static_cast<size_t>(count), commands));
  }
  Status prepare_stream(const Frames& frames, SetupLog& log) override;
  Status run_stream(int count, const Frames& frames) override { return stream_->run(count, inference_, frames); }
  Status run_profiled(size_t begin, size_t end, std::vector<int64_t>& step_ns) override;
  uint64_t device_bytes() const override { return memory_.bytes(); }

 private:
  Status record_stages(const Recorder& recorder);
  Status profile(const Recorder& recorder, const Timestamps& timestamps, std::vector<const Step*>& batch,
                 std::vector<int64_t>& step_ns);

  std::unique_ptr<Device> device_;  // destroyed last
  Memory memory_;
  Pipelines pipelines_;
  const Plan* plan_ = nullptr;
  std::optional<Stream> stream_;
  std::optional<Overlap> overlap_;  // of a plan that swaps, where swaps have a queue
  VkCommandBuffer inference_ = nullptr;
  VkCommandBuffer profiled_ = nullptr;
  std::vector<VkCommandBuffer> stages_;  // a pass through the steps of each
};

Status VulkanBackend::prepare(const Bundle& bundle, SetupLog& log) {
  plan_ = &bundle.plan;
  const Recorder recorder(*plan_, *device_, memory_, pipelines_);
  if (auto error = recorder.check_dispatches()) return error;
  if (auto error = pipelines_.build(bundle, log)) return error;
  int64_t start_ns = boottime_ns();
  if (auto error = memory_.allocate(*plan_)) return error;
  log.record("allocate", start_ns, std::to_string(plan_->pools.size()) + " pools", false, memory_.bytes());
  start_ns = boottime_ns();
  if (auto error = pipelines_.bind(*plan_, memory_)) return error;
  log.record("descriptors", start_ns, std::to_string(plan_->steps.size()) + " steps");
  start_ns = boottime_ns();
  for (VkCommandBuffer* made : {&inference_, &profiled_}) {
    const auto commands = device_->command_buffer();
    if (!commands) return commands.error();
    *made = *commands;
  }
  if (auto error = recorder.record(inference_, 0, plan_->steps.size())) return error;
  if (auto error = record_stages(recorder)) return error;
  if (const Lanes lanes = Lanes::of(*plan_); lanes.any() && device_->has_swap_queue()) {
    auto made = Overlap::make(*device_, *plan_, lanes, recorder);
    if (!made) return made.error();
    overlap_.emplace(std::move(*made));
  }
  const size_t buffers = 1 + stages_.size() + (overlap_ ? overlap_->parts() : 0);
  log.record("record", start_ns, std::to_string(buffers) + (buffers == 1 ? " command buffer" : " command buffers"));
  start_ns = boottime_ns();
  if (auto error = memory_.upload(bundle)) return error;
  log.record("upload", start_ns, "", false, plan_->blob_bytes);
  return kOk;
}

Status VulkanBackend::record_stages(const Recorder& recorder) {
  for (const Stage& stage : plan_->stages) {
    const auto commands = device_->command_buffer();
    if (!commands) return commands.error();
    if (auto error = recorder.record(*commands, stage.begin, stage.end)) return error;
    stages_.push_back(*commands);
  }
  return kOk;
}

Status VulkanBackend::prepare_stream(const Frames& frames, SetupLog&) {
  auto made = Stream::make(*device_, memory_, frames);
  if (!made) return made.error();
  stream_.emplace(std::move(*made));
  return kOk;
}

Status VulkanBackend::run_profiled(size_t begin, size_t end, std::vector<int64_t>& step_ns) {
  const Recorder recorder(*plan_, *device_, memory_, pipelines_);
  Timestamps timestamps(*device_);
  if (auto error = timestamps.make()) return error;
  std::vector<const Step*> batch;
  for (size_t i = begin; i < end; ++i) {
    batch.push_back(&plan_->steps[i]);
    if (batch.size() < Timestamps::kPairs) continue;
    if (auto error = profile(recorder, timestamps, batch, step_ns)) return error;
  }
  return profile(recorder, timestamps, batch, step_ns);
}

Status VulkanBackend::profile(const Recorder& recorder, const Timestamps& timestamps, std::vector<const Step*>& batch,
                              std::vector<int64_t>& step_ns) {
  const auto fill = [&]() -> Status {
    timestamps.reset(profiled_);
    for (uint32_t i = 0; i < batch.size(); ++i) {
      barrier(*device_, profiled_, Seen::by_device);
      timestamps.write(profiled_, 2 * i);
      recorder.record_step(profiled_, *batch[i]);
      barrier(*device_, profiled_, Seen::by_device);
      timestamps.write(profiled_, 2 * i + 1);
    }
    barrier(*device_, profiled_, Seen::by_host);
    return kOk;
  };
  if (auto error = device_->record(profiled_, fill)) return error;
  if (auto error = device_->execute(profiled_)) return error;
  const auto durations = timestamps.durations(static_cast<uint32_t>(batch.size()));
  if (!durations) return durations.error();
  for (size_t i = 0; i < batch.size(); ++i) step_ns[batch[i]->index] = (*durations)[i];
  batch.clear();
  return kOk;
}

}  // namespace
}  // namespace vulkan

Result<std::unique_ptr<Backend>> open_vulkan(const BackendRequest& request, SetupLog& log) {
  int64_t start_ns = boottime_ns();
  const auto library = vulkan::Library::load();
  if (!library) return library.error();
  log.record("library", start_ns, (*library)->path);
  start_ns = boottime_ns();
  auto devices = vulkan::list_devices(**library);
  if (!devices) return devices.error();
  log.record("discovery", start_ns, std::to_string(devices->size()) + " devices");
  start_ns = boottime_ns();
  std::vector<std::string> names;
  for (const vulkan::PhysicalDevice& device : *devices) names.push_back(device.facts.device_name);
  const auto chosen = choose_device(names, request.device, Api::vulkan);
  if (!chosen) return chosen.error();
  auto device = vulkan::Device::open(**library, (*devices)[*chosen], request.fp16, request.environment.swap_queue);
  if (!device) return device.error();
  log.record("context", start_ns);
  return std::unique_ptr<Backend>(std::make_unique<vulkan::VulkanBackend>(std::move(*device), request.cache_dir));
}

Result<std::vector<ApiFacts>> probe_vulkan(const Environment&) {
  const auto library = vulkan::Library::load();
  if (!library) return library.error();
  const auto devices = vulkan::list_devices(**library);
  if (!devices) return devices.error();
  std::vector<ApiFacts> facts;
  for (const vulkan::PhysicalDevice& device : *devices) facts.push_back(device.facts);
  return facts;
}

}  // namespace pocketfarm
