#include "backends/open.h"

#include <cstring>

#include "device/affinity.h"
#include "system/clock.h"
#include "telemetry/readings.h"
#include "facts.h"
#include "instance.h"
#include "backends/cpu/processor/instruction_set.h"
#include "backends/cpu/threads/pipeline.h"
#include "stages.h"
#include "backends/cpu/threads/thread_pool.h"

namespace pocketfarm {
namespace cpu {
namespace {

class CpuBackend final : public Backend {
 public:
  CpuBackend(ApiFacts facts, const CpuUse& use)
      : facts_(std::move(facts)), use_(use),
        pool_(use.threads,
              use.in_order   ? ThreadPool::Life::in_order
              : use.per_call ? ThreadPool::Life::per_call
                             : ThreadPool::Life::kept,
              cores()) {}

  const ApiFacts& facts() const override { return facts_; }
  int threads() const override { return use_.threads; }
  Status prepare(const Bundle& bundle, SetupLog& log) override;
  Status write(const Buffer& buffer, const void* data, uint64_t bytes) override {
    for (const auto& instance : instances_) std::memcpy(instance->address(buffer), data, bytes);
    return kOk;
  }
  Status read(const Buffer& buffer, void* data, uint64_t bytes) override {
    std::memcpy(data, instances_[last_]->address(buffer), bytes);
    return kOk;
  }
  void* address(const Buffer& buffer) override { return instances_[last_]->address(buffer); }
  Status run() override {
    execute(0, 0, steps().size(), pool_);
    last_ = 0;
    return kOk;
  }
  Status run_batches(const Stage& stage, int64_t count) override {
    for (int64_t i = 0; i < count; ++i) execute(0, stage.begin, stage.end, pool_);
    return kOk;
  }
  Status prepare_stream(const Frames& frames, SetupLog& log) override;
  Status run_stream(int count, const Frames& frames) override;
  Status run_profiled(size_t begin, size_t end, std::vector<int64_t>& step_ns) override;
  uint64_t device_bytes() const override;

 private:
  const std::vector<Step>& steps() const { return bundle_->plan.steps; }
  std::vector<int> cores() const { return use_.pinned ? fast_cores() : std::vector<int>(); }
  void execute(size_t instance, size_t begin, size_t end, ThreadPool& pool) {
    for (size_t i = begin; i < end; ++i) instances_[instance]->execute(steps()[i], pool);
  }
  Status add_instances(size_t count, const Frames& frames);
  std::vector<int64_t> costs_ns();
  void visit(const Segment& segment, int64_t frame, size_t slot, ThreadPool& pool, const Frames& frames);

  const ApiFacts facts_;
  const CpuUse use_;
  ThreadPool pool_;
  const Bundle* bundle_ = nullptr;
  std::vector<std::unique_ptr<Instance>> instances_;  // the first is that of single inferences
  std::unique_ptr<Pipeline> pipeline_;
  size_t last_ = 0;  // instance of the last inference
};

Status CpuBackend::prepare(const Bundle& bundle, SetupLog& log) {
  bundle_ = &bundle;
  int64_t start_ns = boottime_ns();
  instances_.push_back(std::make_unique<Instance>(bundle));
  Instance& first = *instances_.front();
  if (auto error = first.allocate()) return error;
  log.record("allocate", start_ns, std::to_string(bundle.plan.pools.size()) + " pools", false, first.bytes());
  start_ns = boottime_ns();
  if (auto error = first.make_calls()) return error;
  log.record("build", start_ns, std::to_string(steps().size()) + " calls of built-in operations");
  start_ns = boottime_ns();
  log.record("upload", start_ns, "", false, first.upload());
  return kOk;
}

uint64_t CpuBackend::device_bytes() const {
  uint64_t total = instances_.empty() ? 0 : instances_.front()->weight_bytes();
  for (const auto& instance : instances_) total += instance->bytes();
  return total;
}

Status CpuBackend::add_instances(size_t count, const Frames& frames) {
  while (instances_.size() < count) {
    auto instance = std::make_unique<Instance>(*bundle_);
    if (auto error = instance->allocate()) return error;
    if (auto error = instance->make_calls()) return error;
    instance->upload();
    for (const Frames::Item& item : frames.inputs) std::memcpy(instance->address(*item.buffer), item.data, item.bytes);
    instances_.push_back(std::move(instance));
  }
  return kOk;
}

// Of each step on one thread: the least of a few passes.
std::vector<int64_t> CpuBackend::costs_ns() {
  constexpr int kPasses = 4;
  ThreadPool alone(1);
  std::vector<int64_t> least(steps().size(), INT64_MAX);
  for (int pass = 0; pass < kPasses; ++pass)
    for (size_t i = 0; i < steps().size(); ++i) {
      const int64_t start_ns = boottime_ns();
      execute(0, i, i + 1, alone);
      least[i] = std::min(least[i], boottime_ns() - start_ns);
    }
  return least;
}

Status CpuBackend::prepare_stream(const Frames& frames, SetupLog& log) {
  if (use_.pipeline == CpuUse::Pipeline::none) return kOk;
  const int64_t start_ns = boottime_ns();
  auto route = route_of(use_, bundle_->plan, costs_ns());
  if (!route) return route.error();
  const bool alone = static_cast<size_t>(use_.threads) <= allowed_cpus().size();  // a core for each stage
  const std::string words = describe(*route);
  pipeline_ = std::make_unique<Pipeline>(std::move(*route), cores(), alone);
  if (auto error = add_instances(pipeline_->slots(), frames)) return error;
  log.record("pipeline", start_ns, words, false, device_bytes());
  return kOk;
}

// Part of a frame's way; what is moved in and out belongs to its first and last step.
void CpuBackend::visit(const Segment& segment, int64_t frame, size_t slot, ThreadPool& pool, const Frames& frames) {
  if (frames.moved && segment.begin == 0)
    for (const Frames::Item& item : frames.inputs)
      std::memcpy(instances_[slot]->address(*item.buffer), item.frame(frame % frames.count), item.bytes);
  execute(slot, segment.begin, segment.end, pool);
  if (frames.moved && segment.end == steps().size())
    for (const Frames::Item& item : frames.outputs)
      std::memcpy(item.frame(frame % frames.count), instances_[slot]->address(*item.buffer), item.bytes);
}

Status CpuBackend::run_stream(int count, const Frames& frames) {
  if (pipeline_) {
    last_ = pipeline_->run(count, [&](int64_t frame, size_t slot, const Segment& segment, ThreadPool& pool) {
      visit(segment, frame, slot, pool, frames);
    });
    return kOk;
  }
  for (int64_t frame = 0; frame < count; ++frame) visit({0, 0, steps().size()}, frame, 0, pool_, frames);
  last_ = 0;
  return kOk;
}

Status CpuBackend::run_profiled(size_t begin, size_t end, std::vector<int64_t>& step_ns) {
  last_ = 0;
  for (size_t i = begin; i < end; ++i) {
    const int64_t start_ns = boottime_ns();
    execute(0, i, i + 1, pool_);
    step_ns[i] = boottime_ns() - start_ns;
  }
  return kOk;
}

}  // namespace
}  // namespace cpu

Result<std::unique_ptr<Backend>> open_cpu(const BackendRequest& request, SetupLog& log) {
  const int64_t start_ns = boottime_ns();
  if (auto error = cpu::choose_instruction_set(request.environment.cpu_isa)) return *error;
  ApiFacts facts = cpu::cpu_facts(request.environment);
  const auto chosen = choose_device({facts.device_name}, request.device, Api::cpu);
  if (!chosen) return chosen.error();
  CpuUse use = request.cpu;
  if (use.threads == 0) use.threads = usable_cores();
  auto backend = std::make_unique<cpu::CpuBackend>(std::move(facts), use);
  log.record("context", start_ns, describe(use));
  return std::unique_ptr<Backend>(std::move(backend));
}

Result<std::vector<ApiFacts>> probe_cpu(const Environment& environment) {
  if (auto error = cpu::choose_instruction_set(environment.cpu_isa)) return *error;
  return std::vector<ApiFacts>{cpu::cpu_facts(environment)};
}

}  // namespace pocketfarm
