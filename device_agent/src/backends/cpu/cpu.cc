#include "cpu.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "../../clock.h"
#include "facts.h"
#include "operation.h"
#include "thread_pool.h"

namespace pocketfarm {
namespace cpu {
namespace {

// Pages of a pool, zeroed by the kernel when first touched.
class Pages {
 public:
  explicit Pages(uint64_t bytes) : bytes_(bytes) {
    void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    data_ = data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data);
  }
  Pages(Pages&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  Pages& operator=(Pages&&) = delete;
  ~Pages() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
  }
  std::byte* data() const { return data_; }

 private:
  std::byte* data_;
  uint64_t bytes_;
};

class CpuBackend final : public Backend {
 public:
  CpuBackend(ApiFacts facts, int threads) : facts_(std::move(facts)), pool_(threads) {}

  const ApiFacts& facts() const override { return facts_; }
  int threads() const override { return pool_.threads(); }
  Status prepare(const Bundle& bundle, SetupLog& log) override;
  Status write(const Buffer& buffer, const void* data, uint64_t bytes) override {
    std::memcpy(address(buffer), data, bytes);
    return kOk;
  }
  Status read(const Buffer& buffer, void* data, uint64_t bytes) override {
    std::memcpy(data, address(buffer), bytes);
    return kOk;
  }
  Status run() override {
    return plan_->each_executed([&](const Step& step) { return execute(step); });
  }
  Status run_stream(int count, const Frames& frames) override;
  Status run_profiled(std::vector<int64_t>& leaf_ns) override;
  uint64_t device_bytes() const override { return bytes_; }

 private:
  struct Prepared {
    const Operation* operation = nullptr;
    Call call;
  };

  std::byte* address(const Buffer& buffer) const { return pools_[buffer.pool].data() + buffer.offset; }
  Status allocate(const Plan& plan);
  Status make_calls(const std::vector<Step>& steps);
  Status make_call(const Step& step);
  Status execute(const Step& step);

  const ApiFacts facts_;
  ThreadPool pool_;
  const Plan* plan_ = nullptr;
  std::vector<Pages> pools_;
  std::vector<Prepared> calls_;  // by leaf
  std::vector<std::vector<std::byte>> swapped_;
  uint64_t bytes_ = 0;
};

Status CpuBackend::prepare(const Bundle& bundle, SetupLog& log) {
  plan_ = &bundle.plan;
  int64_t start_ns = boottime_ns();
  if (auto error = allocate(*plan_)) return error;
  log.record("allocate", start_ns, std::to_string(pools_.size()) + " pools", false, bytes_);
  start_ns = boottime_ns();
  calls_.resize(plan_->leaves);
  if (auto error = make_calls(plan_->steps)) return error;
  log.record("build", start_ns, std::to_string(calls_.size()) + " calls of built-in operations");
  start_ns = boottime_ns();
  for (const Buffer& buffer : plan_->buffers)
    if (buffer.blob_offset) std::memcpy(address(buffer), bundle.content(buffer), buffer.bytes);
  log.record("upload", start_ns, "", false, plan_->blob_bytes);
  return kOk;
}

Status CpuBackend::allocate(const Plan& plan) {
  for (const Pool& pool : plan.pools) {
    pools_.emplace_back(pool.bytes);
    if (pools_.back().data() == nullptr)
      return Error{Code::out_of_memory, "pool `" + pool.id + "`: cannot allocate " + std::to_string(pool.bytes) + " bytes"};
    bytes_ += pool.bytes;
  }
  swapped_.resize(plan.buffers.size());
  return kOk;
}

Status CpuBackend::make_calls(const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    if (step.kind == Step::Kind::swap_out) swapped_[step.source].resize(step.bytes);
    if (step.kind == Step::Kind::dispatch)
      if (auto error = make_call(step)) {
        error->message = "step " + std::to_string(step.index) + ", " + error->message;
        error->step = step.layer;
        return error;
      }
    if (auto error = make_calls(step.steps)) return error;
  }
  return kOk;
}

Status CpuBackend::make_call(const Step& step) {
  const Program& program = plan_->programs[step.program];
  Prepared& prepared = calls_[step.leaf];
  prepared.operation = find_operation(program.kernel);
  if (prepared.operation == nullptr)
    return Error{Code::plan_invalid, "unknown CPU operation `" + program.kernel + "`; there are: " + operation_names()};
  const Operation& operation = *prepared.operation;
  for (const Argument& argument : step.arguments) {
    if (argument.kind == Parameter::Kind::i32) prepared.call.ints.push_back(argument.i32);
    if (argument.kind == Parameter::Kind::f32) prepared.call.floats.push_back(argument.f32);
    if (argument.kind != Parameter::Kind::buffer) continue;
    const Buffer& buffer = plan_->buffers[argument.buffer];
    prepared.call.buffers.push_back(
        {reinterpret_cast<float*>(address(buffer)), static_cast<int64_t>(buffer.bytes / sizeof(float))});
  }
  const Call& call = prepared.call;
  if (call.buffers.size() != operation.buffers || call.ints.size() != operation.ints || call.floats.size() != operation.floats)
    return Error{Code::plan_invalid, program.kernel + ": takes " + std::to_string(operation.buffers) + " buffers, " +
                                         std::to_string(operation.ints) + " i32, " + std::to_string(operation.floats) +
                                         " f32; the plan gives " + std::to_string(call.buffers.size()) + ", " +
                                         std::to_string(call.ints.size()) + ", " + std::to_string(call.floats.size())};
  Status error = operation.check(call);
  if (error) error->message = program.kernel + ": " + error->message;
  return error;
}

Status CpuBackend::execute(const Step& step) {
  const Buffer& source = plan_->buffers[step.source];
  switch (step.kind) {
    case Step::Kind::dispatch: calls_[step.leaf].operation->run(calls_[step.leaf].call, pool_); break;
    case Step::Kind::copy:
      std::memcpy(address(plan_->buffers[step.target]) + step.target_offset, address(source) + step.source_offset,
                  step.bytes);
      break;
    case Step::Kind::swap_out: std::memcpy(swapped_[step.source].data(), address(source), step.bytes); break;
    case Step::Kind::swap_in: std::memcpy(address(source), swapped_[step.source].data(), step.bytes); break;
    case Step::Kind::repeat: break;  // unrolled by Plan::each_executed
  }
  return kOk;
}

Status CpuBackend::run_stream(int count, const Frames& frames) {
  for (int i = 0; i < count; ++i) {
    if (frames.moved)
      for (const Frames::Item& item : frames.inputs)
        std::memcpy(address(*item.buffer), item.frame(i % frames.count), item.bytes);
    if (auto error = run()) return error;
    if (frames.moved)
      for (const Frames::Item& item : frames.outputs)
        std::memcpy(item.frame(i % frames.count), address(*item.buffer), item.bytes);
  }
  return kOk;
}

Status CpuBackend::run_profiled(std::vector<int64_t>& leaf_ns) {
  return plan_->each_executed([&](const Step& step) -> Status {
    const int64_t start_ns = boottime_ns();
    if (auto error = execute(step)) return error;
    leaf_ns[step.leaf] += boottime_ns() - start_ns;
    return kOk;
  });
}

}  // namespace
}  // namespace cpu

Result<std::unique_ptr<Backend>> open_cpu(const BackendRequest& request, SetupLog& log) {
  const int64_t start_ns = boottime_ns();
  ApiFacts facts = cpu::cpu_facts(request.environment);
  const auto chosen = choose_device({facts.device_name}, request.device, Api::cpu);
  if (!chosen) return chosen.error();
  const int threads = request.threads > 0 ? request.threads : usable_cores();
  auto backend = std::make_unique<cpu::CpuBackend>(std::move(facts), threads);
  log.record("context", start_ns, std::to_string(threads) + " threads");
  return std::unique_ptr<Backend>(std::move(backend));
}

Result<std::vector<ApiFacts>> probe_cpu(const Environment& environment) {
  return std::vector<ApiFacts>{cpu::cpu_facts(environment)};
}

}  // namespace pocketfarm
