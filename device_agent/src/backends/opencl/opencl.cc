#include "backends/open.h"

#include <algorithm>
#include <array>

#include "device.h"
#include "kernels.h"
#include "library.h"
#include "memory.h"
#include "ordering/order.h"
#include "profile.h"
#include "recording.h"

namespace pocketfarm {
namespace opencl {
namespace {

class OpenClBackend final : public Backend {
 public:
  static Result<std::unique_ptr<Backend>> open(const BackendRequest& request, SetupLog& log);

  const ApiFacts& facts() const override { return device_.facts; }
  Status prepare(const Bundle& bundle, SetupLog& log) override;
  Status write(const Buffer& buffer, const void* data, uint64_t bytes) override;
  Status read(const Buffer& buffer, void* data, uint64_t bytes) override;
  Status run() override;
  Status run_batches(const Stage& stage, int64_t count) override;
  Status run_stream(int count, const Frames& frames) override;
  Status run_profiled(size_t begin, size_t end, std::vector<int64_t>& step_ns) override;
  uint64_t device_bytes() const override { return memory_.bytes(); }

 private:
  OpenClBackend(const Library& library, Device device, const Environment& environment, std::string cache_dir)
      : library_(library),
        device_(std::move(device)),
        kernels_(library, device_, environment, std::move(cache_dir)),
        memory_(library),
        recordings_(library, device_, kernels_, environment.launch) {}

  Status make_context();
  Result<Owned<cl_command_queue>> make_queue() const;
  Status enqueue(const Step& step, const Order& order);
  Status submit(size_t begin, size_t end);
  Status submit_in_lanes(size_t begin, size_t end);
  Status move_in(const Frames& frames, int64_t frame);
  Status move_out(const Frames& frames, int64_t frame);
  size_t index(const Buffer& buffer) const { return static_cast<size_t>(&buffer - plan_->buffers.data()); }

  const Library& library_;
  const Device device_;
  const Plan* plan_ = nullptr;
  Owned<cl_context> context_;
  Owned<cl_command_queue> queue_;
  std::array<Owned<cl_command_queue>, kLanes - 1> swaps_;  // where the plan has any: they are moved while kernels run
  Lanes lanes_;
  Kernels kernels_;
  Memory memory_;
  Recordings recordings_;
};

Result<std::unique_ptr<Backend>> OpenClBackend::open(const BackendRequest& request, SetupLog& log) {
  int64_t start_ns = boottime_ns();
  auto library = Library::load();
  if (!library) return library.error();
  log.record("library", start_ns, (*library)->path);
  start_ns = boottime_ns();
  auto devices = list_devices(**library);
  if (!devices) return devices.error();
  log.record("discovery", start_ns, std::to_string(devices->size()) + " devices");
  start_ns = boottime_ns();
  std::vector<std::string> names;
  for (const Device& device : *devices) names.push_back(device.facts.device_name);
  const auto chosen = choose_device(names, request.device, Api::opencl);
  if (!chosen) return chosen.error();
  std::unique_ptr<OpenClBackend> backend(
      new OpenClBackend(**library, (*devices)[*chosen], request.environment, request.cache_dir));
  if (auto error = backend->make_context()) return *error;
  log.record("context", start_ns);
  return std::unique_ptr<Backend>(std::move(backend));
}

Status OpenClBackend::make_context() {
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                              reinterpret_cast<cl_context_properties>(device_.platform), 0};
  cl_int code = CL_SUCCESS;
  context_ = {library_.clCreateContext(properties, 1, &device_.id, nullptr, nullptr, &code), library_.clReleaseContext};
  if (code != CL_SUCCESS) return cl_error("clCreateContext", code);
  auto made = make_queue();
  if (!made) return made.error();
  queue_ = std::move(*made);
  return kOk;
}

Result<Owned<cl_command_queue>> OpenClBackend::make_queue() const {
  cl_int code = CL_SUCCESS;
  Owned<cl_command_queue> made(library_.clCreateCommandQueue(context_.get(), device_.id, 0, &code),
                               library_.clReleaseCommandQueue);
  if (code != CL_SUCCESS) return cl_error("clCreateCommandQueue", code);
  return made;
}

Status OpenClBackend::prepare(const Bundle& bundle, SetupLog& log) {
  plan_ = &bundle.plan;
  lanes_ = Lanes::of(bundle.plan);
  if (lanes_.any()) {
    for (Owned<cl_command_queue>& queue : swaps_) {
      auto made = make_queue();
      if (!made) return made.error();
      queue = std::move(*made);
    }
  }
  if (auto error = kernels_.prepare(bundle, context_.get(), log)) return error;
  int64_t start_ns = boottime_ns();
  if (auto error = memory_.allocate(bundle.plan, context_.get(), queue_.get())) return error;
  log.record("allocate", start_ns, std::to_string(bundle.plan.pools.size()) + " pools", false, memory_.bytes());
  start_ns = boottime_ns();
  if (auto error = kernels_.bind(memory_)) return error;
  log.record("descriptors", start_ns, "arguments of " + std::to_string(bundle.plan.steps.size()) + " steps");
  if (!lanes_.any())
    if (auto error = recordings_.record(bundle.plan, queue_.get(), log)) return error;
  start_ns = boottime_ns();
  if (auto error = memory_.upload(bundle, queue_.get())) return error;
  log.record("upload", start_ns, "", false, bundle.plan.blob_bytes);
  return kOk;
}

Status OpenClBackend::write(const Buffer& buffer, const void* data, uint64_t bytes) {
  return memory_.write(buffer, index(buffer), data, bytes, queue_.get());
}

Status OpenClBackend::read(const Buffer& buffer, void* data, uint64_t bytes) {
  return memory_.read(buffer, index(buffer), data, bytes, queue_.get());
}

Status of_step(Error error, const Step& step) {
  error.step = step.layer;
  return error;
}

Status OpenClBackend::enqueue(const Step& step, const Order& order) {
  cl_int code = CL_SUCCESS;
  const cl_mem source = memory_.buffer(step.source);
  if (step.kind == Step::Kind::dispatch) {
    auto error = kernels_.launch(step, order);
    return error ? of_step(std::move(*error), step) : error;
  } else if (step.kind == Step::Kind::copy) {
    code = library_.clEnqueueCopyBuffer(order.queue, source, memory_.buffer(step.target), step.source_offset,
                                        step.target_offset, step.bytes, order.waits(), order.events(), order.done);
  } else if (step.kind == Step::Kind::swap_out) {
    code = library_.clEnqueueReadBuffer(order.queue, source, CL_FALSE, 0, step.bytes, memory_.swapped(step.target),
                                        order.waits(), order.events(), order.done);
  } else {
    code = library_.clEnqueueWriteBuffer(order.queue, source, CL_FALSE, 0, step.bytes, memory_.swapped(step.target),
                                         order.waits(), order.events(), order.done);
  }
  if (code == CL_SUCCESS) return kOk;
  return of_step(cl_error("step " + std::to_string(step.index), code), step);
}

Status OpenClBackend::submit(size_t begin, size_t end) {
  if (lanes_.any()) return submit_in_lanes(begin, end);
  for (size_t i = begin; i < end;) {
    const size_t next = recordings_.end_of(i, end);
    if (auto error = next > i ? recordings_.enqueue(i, queue_.get()) : enqueue(plan_->steps[i], {queue_.get()})) return error;
    i = std::max(next, i + 1);
  }
  return kOk;
}

// All queues have ended when it returns, so that steps wait for none of another submission.
Status OpenClBackend::submit_in_lanes(size_t begin, size_t end) {
  if (const cl_int code = library_.clFinish(queue_.get())) return cl_error("clFinish", code);
  std::vector<Owned<cl_event>> done(plan_->steps.size());
  for (size_t i = begin; i < end; ++i) {
    const size_t lane = lane_of(plan_->steps[i]);
    cl_event ended = nullptr;
    Order order{lane == 0 ? queue_.get() : swaps_[lane - 1].get(), lanes_.awaited[i] ? &ended : nullptr};
    for (const size_t other : lanes_.waits[i])
      if (other >= begin) order.after.push_back(done[other].get());
    if (auto error = enqueue(plan_->steps[i], order)) return error;
    if (!lanes_.awaited[i]) continue;
    done[i] = {ended, library_.clReleaseEvent};
    if (const cl_int code = library_.clFlush(order.queue)) return cl_error("clFlush", code);
  }
  for (const cl_command_queue queue : {swaps_[0].get(), swaps_[1].get(), queue_.get()})
    if (const cl_int code = library_.clFinish(queue)) return cl_error("clFinish", code);
  return kOk;
}

Status OpenClBackend::run() {
  if (auto error = submit(0, plan_->steps.size())) return error;
  if (const cl_int code = library_.clFinish(queue_.get())) return cl_error("clFinish", code);
  return kOk;
}

Status OpenClBackend::run_batches(const Stage& stage, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (auto error = submit(stage.begin, stage.end)) return error;
    if (const cl_int code = library_.clFlush(queue_.get())) return cl_error("clFlush", code);
  }
  if (const cl_int code = library_.clFinish(queue_.get())) return cl_error("clFinish", code);
  return kOk;
}

// The queue is in order: everything is handed over at once, and the host waits for the end alone.
Status OpenClBackend::run_stream(int count, const Frames& frames) {
  for (int i = 0; i < count; ++i) {
    if (auto error = move_in(frames, i % frames.count)) return error;
    if (auto error = submit(0, plan_->steps.size())) return error;
    if (auto error = move_out(frames, i % frames.count)) return error;
    if (const cl_int code = library_.clFlush(queue_.get())) return cl_error("clFlush", code);
  }
  if (const cl_int code = library_.clFinish(queue_.get())) return cl_error("clFinish", code);
  return kOk;
}

Status OpenClBackend::move_in(const Frames& frames, int64_t frame) {
  for (const Frames::Item& item : frames.inputs)
    if (frames.moved)
      if (const cl_int code = library_.clEnqueueWriteBuffer(queue_.get(), memory_.buffer(index(*item.buffer)), CL_FALSE, 0,
                                                            item.bytes, item.frame(frame), 0, nullptr, nullptr))
        return cl_error("input `" + item.buffer->id + "`: clEnqueueWriteBuffer", code);
  return kOk;
}

Status OpenClBackend::move_out(const Frames& frames, int64_t frame) {
  for (const Frames::Item& item : frames.outputs)
    if (frames.moved)
      if (const cl_int code = library_.clEnqueueReadBuffer(queue_.get(), memory_.buffer(index(*item.buffer)), CL_FALSE, 0,
                                                           item.bytes, item.frame(frame), 0, nullptr, nullptr))
        return cl_error("output `" + item.buffer->id + "`: clEnqueueReadBuffer", code);
  return kOk;
}

Status OpenClBackend::run_profiled(size_t begin, size_t end, std::vector<int64_t>& step_ns) {
  Profile profile(library_, step_ns);
  if (auto error = profile.open(context_.get(), device_.id)) return error;
  for (size_t i = begin; i < end; ++i) {
    const Step& step = plan_->steps[i];
    cl_event event = nullptr;
    if (auto error = enqueue(step, {profile.queue(), &event})) return error;
    if (auto error = profile.add(step.index, event)) return error;
  }
  return profile.collect();
}

}  // namespace
}  // namespace opencl

Result<std::unique_ptr<Backend>> open_opencl(const BackendRequest& request, SetupLog& log) {
  return opencl::OpenClBackend::open(request, log);
}

Result<std::vector<ApiFacts>> probe_opencl(const Environment&) {
  const auto library = opencl::Library::load();
  if (!library) return library.error();
  const auto devices = opencl::list_devices(**library);
  if (!devices) return devices.error();
  std::vector<ApiFacts> facts;
  for (const opencl::Device& device : *devices) facts.push_back(device.facts);
  return facts;
}

}  // namespace pocketfarm
