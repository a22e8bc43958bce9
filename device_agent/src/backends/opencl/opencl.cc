#include "opencl.h"

#include <map>

#include "device.h"
#include "library.h"
#include "memory.h"
#include "program_builder.h"

namespace pocketfarm {
namespace opencl {
namespace {

constexpr size_t kProfiledBatch = 512;  // events held at a time in a profiled pass

class OpenClBackend final : public Backend {
 public:
  static Result<std::unique_ptr<Backend>> open(const BackendRequest& request, SetupLog& log);

  const ApiFacts& facts() const override { return device_.facts; }
  Status prepare(const Bundle& bundle, SetupLog& log) override;
  Status write(const Buffer& buffer, const void* data, uint64_t bytes) override;
  Status read(const Buffer& buffer, void* data, uint64_t bytes) override;
  Status run() override;
  Status run_stream(int count, const Frames& frames) override;
  Status run_profiled(std::vector<int64_t>& leaf_ns) override;
  uint64_t device_bytes() const override { return memory_.bytes(); }

 private:
  OpenClBackend(const Library& library, Device device, std::string cache_dir)
      : library_(library), device_(std::move(device)), cache_dir_(std::move(cache_dir)), memory_(library) {}

  using Source = std::pair<std::string, std::string>;  // file, options
  struct Profiled {
    Owned<cl_event> event;
    size_t leaf;
  };

  Status make_context();
  Status build(const Bundle& bundle, SetupLog& log);
  Status make_kernels(const Plan& plan, SetupLog& log);
  Result<Owned<cl_kernel>> make_kernel(const Program& program);
  Status bind_arguments(const Plan& plan);
  void save_binaries(const Bundle& bundle, SetupLog& log);
  Status enqueue(const Step& step, cl_command_queue queue, cl_event* event);
  cl_int dispatch(const Step& step, cl_command_queue queue, cl_event* event);
  cl_int set_arguments(const Step& step);
  Status collect(std::vector<Profiled>& batch, cl_command_queue queue, std::vector<int64_t>& leaf_ns);
  Status submit();
  Status move_in(const Frames& frames, int64_t frame);
  Status move_out(const Frames& frames, int64_t frame);
  size_t index(const Buffer& buffer) const { return static_cast<size_t>(&buffer - plan_->buffers.data()); }

  const Library& library_;
  const Device device_;
  const std::string cache_dir_;
  const Plan* plan_ = nullptr;
  Owned<cl_context> context_;
  Owned<cl_command_queue> queue_;
  std::map<Source, BuiltProgram> built_;
  std::vector<Owned<cl_kernel>> kernels_;  // by leaf: arguments are set once, which a driver may take long over
  Memory memory_;
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
  std::unique_ptr<OpenClBackend> backend(new OpenClBackend(**library, (*devices)[*chosen], request.cache_dir));
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
  queue_ = {library_.clCreateCommandQueue(context_.get(), device_.id, 0, &code), library_.clReleaseCommandQueue};
  if (code != CL_SUCCESS) return cl_error("clCreateCommandQueue", code);
  return kOk;
}

Status OpenClBackend::prepare(const Bundle& bundle, SetupLog& log) {
  plan_ = &bundle.plan;
  if (auto error = build(bundle, log)) return error;
  if (auto error = make_kernels(bundle.plan, log)) return error;
  save_binaries(bundle, log);
  int64_t start_ns = boottime_ns();
  if (auto error = memory_.allocate(bundle.plan, context_.get())) return error;
  log.record("allocate", start_ns, std::to_string(bundle.plan.pools.size()) + " pools", false, memory_.bytes());
  start_ns = boottime_ns();
  if (auto error = bind_arguments(bundle.plan)) return error;
  log.record("descriptors", start_ns, "arguments of " + std::to_string(bundle.plan.leaves) + " steps");
  start_ns = boottime_ns();
  if (auto error = memory_.upload(bundle, queue_.get())) return error;
  log.record("upload", start_ns, "", false, bundle.plan.blob_bytes);
  return kOk;
}

Status OpenClBackend::build(const Bundle& bundle, SetupLog& log) {
  const int64_t start_ns = boottime_ns();
  ProgramBuilder builder(library_, device_, context_.get(), cache_dir_, log);
  size_t cached = 0;
  for (const Program& program : bundle.plan.programs) {
    const Source key{program.opencl->file, program.opencl->options};
    if (built_.count(key) != 0) continue;
    auto built = builder.build(bundle.text(key.first), key.second, "program `" + program.id + "`");
    if (!built) return built.error();
    cached += built->cached;
    built_[key] = std::move(*built);
  }
  log.record("build", start_ns, std::to_string(built_.size()) + " programs, " + std::to_string(cached) + " from the cache",
             cached == built_.size() && cached > 0);
  return kOk;
}

Status OpenClBackend::make_kernels(const Plan& plan, SetupLog& log) {
  const int64_t start_ns = boottime_ns();
  kernels_.resize(plan.leaves);
  size_t count = 0;
  if (auto error = plan.each_executed([&](const Step& step) -> Status {
        if (step.kind != Step::Kind::dispatch || kernels_[step.leaf].get() != nullptr) return kOk;
        auto kernel = make_kernel(plan.programs[step.program]);
        if (!kernel) return kernel.error();
        kernels_[step.leaf] = std::move(*kernel);
        ++count;
        return kOk;
      }))
    return error;
  log.record("pipeline", start_ns, std::to_string(count) + " kernels");
  return kOk;
}

Status OpenClBackend::bind_arguments(const Plan& plan) {
  std::vector<bool> bound(plan.leaves, false);
  return plan.each_executed([&](const Step& step) -> Status {
    if (step.kind != Step::Kind::dispatch || bound[step.leaf]) return kOk;
    bound[step.leaf] = true;
    if (const cl_int code = set_arguments(step))
      return cl_error("step " + std::to_string(step.index) + ": clSetKernelArg", code);
    return kOk;
  });
}

Result<Owned<cl_kernel>> OpenClBackend::make_kernel(const Program& program) {
  const std::string name = "program `" + program.id + "`, kernel `" + program.kernel + "`";
  cl_int code = CL_SUCCESS;
  const cl_program built = built_[{program.opencl->file, program.opencl->options}].program.get();
  Owned<cl_kernel> made(library_.clCreateKernel(built, program.kernel.c_str(), &code), library_.clReleaseKernel);
  if (code == CL_INVALID_KERNEL_NAME) return Error{Code::plan_invalid, name + ": not in its source"};
  if (code != CL_SUCCESS) return cl_error(name + ": clCreateKernel", code);
  const cl_kernel kernel = made.get();
  cl_uint count = 0;
  library_.clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, nullptr);
  if (count != program.parameters.size())
    return Error{Code::plan_invalid, name + ": takes " + std::to_string(count) + " arguments, the plan gives " +
                                         std::to_string(program.parameters.size())};
  size_t limit = 0;
  size_t declared[3] = {0, 0, 0};
  library_.clGetKernelWorkGroupInfo(kernel, device_.id, CL_KERNEL_WORK_GROUP_SIZE, sizeof limit, &limit, nullptr);
  library_.clGetKernelWorkGroupInfo(kernel, device_.id, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof declared, declared,
                                    nullptr);
  // NVIDIA says 256 of kernels that were compiled for 512 or 1024; what a kernel declares, the launch decides on
  const bool is_declared = declared[0] * declared[1] * declared[2] == program.work_group_size();
  if (!is_declared && limit > 0 && program.work_group_size() > limit)
    return Error{Code::limit, name + ": work-group of " + std::to_string(program.work_group_size()) +
                                  "; this kernel allows " + std::to_string(limit) + " on this device, " +
                                  std::to_string(program.work_group_size() - limit) + " fewer"};
  return made;
}

void OpenClBackend::save_binaries(const Bundle& bundle, SetupLog& log) {
  if (cache_dir_.empty()) return;
  const int64_t start_ns = boottime_ns();
  size_t saved = 0;
  ProgramBuilder builder(library_, device_, context_.get(), cache_dir_, log);
  for (const auto& [key, built] : built_) {
    if (built.cached) continue;
    ++saved;
    const std::string failure = builder.save(built.program.get(), bundle.text(key.first), key.second);
    if (!failure.empty()) log.warn("program_cache", failure);
  }
  if (saved > 0) log.record("cache", start_ns, std::to_string(saved) + " program binaries kept");
}

Status OpenClBackend::write(const Buffer& buffer, const void* data, uint64_t bytes) {
  const cl_int code = library_.clEnqueueWriteBuffer(queue_.get(), memory_.buffer(index(buffer)), CL_TRUE, 0, bytes, data,
                                                    0, nullptr, nullptr);
  return code == CL_SUCCESS ? kOk : Status(cl_error("buffer `" + buffer.id + "`: clEnqueueWriteBuffer", code));
}

Status OpenClBackend::read(const Buffer& buffer, void* data, uint64_t bytes) {
  const cl_int code = library_.clEnqueueReadBuffer(queue_.get(), memory_.buffer(index(buffer)), CL_TRUE, 0, bytes, data,
                                                   0, nullptr, nullptr);
  return code == CL_SUCCESS ? kOk : Status(cl_error("buffer `" + buffer.id + "`: clEnqueueReadBuffer", code));
}

cl_int OpenClBackend::set_arguments(const Step& step) {
  const cl_kernel kernel = kernels_[step.leaf].get();
  for (cl_uint i = 0; i < step.arguments.size(); ++i) {
    const Argument& argument = step.arguments[i];
    const cl_int code = argument.kind == Parameter::Kind::buffer
                            ? library_.clSetKernelArg(kernel, i, sizeof(cl_mem), memory_.argument(argument.buffer))
                        : argument.kind == Parameter::Kind::i32
                            ? library_.clSetKernelArg(kernel, i, sizeof argument.i32, &argument.i32)
                            : library_.clSetKernelArg(kernel, i, sizeof argument.f32, &argument.f32);
    if (code != CL_SUCCESS) return code;
  }
  return CL_SUCCESS;
}

cl_int OpenClBackend::dispatch(const Step& step, cl_command_queue queue, cl_event* event) {
  const Extent& group = plan_->programs[step.program].work_group;
  size_t global[3], local[3];
  for (int i = 0; i < 3; ++i) {
    local[i] = group[i];
    global[i] = (size_t{step.work_items[i]} + group[i] - 1) / group[i] * group[i];
  }
  return library_.clEnqueueNDRangeKernel(queue, kernels_[step.leaf].get(), 3, nullptr, global, local, 0, nullptr, event);
}

Status OpenClBackend::enqueue(const Step& step, cl_command_queue queue, cl_event* event) {
  cl_int code = CL_SUCCESS;
  const cl_mem source = memory_.buffer(step.source);
  if (step.kind == Step::Kind::dispatch) {
    code = dispatch(step, queue, event);
  } else if (step.kind == Step::Kind::copy) {
    code = library_.clEnqueueCopyBuffer(queue, source, memory_.buffer(step.target), step.source_offset,
                                        step.target_offset, step.bytes, 0, nullptr, event);
  } else if (step.kind == Step::Kind::swap_out) {
    code = library_.clEnqueueReadBuffer(queue, source, CL_FALSE, 0, step.bytes, memory_.swapped(step.target).data(), 0,
                                        nullptr, event);
  } else {
    code = library_.clEnqueueWriteBuffer(queue, source, CL_FALSE, 0, step.bytes, memory_.swapped(step.target).data(), 0,
                                         nullptr, event);
  }
  if (code == CL_SUCCESS) return kOk;
  Error error = cl_error("step " + std::to_string(step.index), code);
  error.step = step.layer;
  return error;
}

Status OpenClBackend::submit() {
  return plan_->each_executed([&](const Step& step) { return enqueue(step, queue_.get(), nullptr); });
}

Status OpenClBackend::run() {
  if (auto error = submit()) return error;
  if (const cl_int code = library_.clFinish(queue_.get())) return cl_error("clFinish", code);
  return kOk;
}

// The queue is in order: everything is handed over at once, and the host waits for the end alone.
Status OpenClBackend::run_stream(int count, const Frames& frames) {
  for (int i = 0; i < count; ++i) {
    if (auto error = move_in(frames, i % frames.count)) return error;
    if (auto error = submit()) return error;
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

Status OpenClBackend::run_profiled(std::vector<int64_t>& leaf_ns) {
  cl_int code = CL_SUCCESS;
  const Owned<cl_command_queue> queue(
      library_.clCreateCommandQueue(context_.get(), device_.id, CL_QUEUE_PROFILING_ENABLE, &code),
      library_.clReleaseCommandQueue);
  if (code != CL_SUCCESS) return cl_error("clCreateCommandQueue with profiling", code);
  std::vector<Profiled> batch;
  const auto submit = [&](const Step& step) -> Status {
    cl_event event = nullptr;
    if (auto error = enqueue(step, queue.get(), &event)) return error;
    batch.push_back({{event, library_.clReleaseEvent}, step.leaf});
    return batch.size() < kProfiledBatch ? kOk : collect(batch, queue.get(), leaf_ns);
  };
  if (auto error = plan_->each_executed(submit)) return error;
  return collect(batch, queue.get(), leaf_ns);
}

Status OpenClBackend::collect(std::vector<Profiled>& batch, cl_command_queue queue, std::vector<int64_t>& leaf_ns) {
  if (const cl_int code = library_.clFinish(queue)) return cl_error("clFinish", code);
  for (const Profiled& item : batch) {
    cl_ulong start = 0, end = 0;
    library_.clGetEventProfilingInfo(item.event.get(), CL_PROFILING_COMMAND_START, sizeof start, &start, nullptr);
    const cl_int code =
        library_.clGetEventProfilingInfo(item.event.get(), CL_PROFILING_COMMAND_END, sizeof end, &end, nullptr);
    if (code != CL_SUCCESS) return cl_error("clGetEventProfilingInfo", code);
    if (end > start) leaf_ns[item.leaf] += static_cast<int64_t>(end - start);
  }
  batch.clear();
  return kOk;
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
