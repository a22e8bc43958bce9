#include "kernels.h"

#include <cstring>
#include <vector>

namespace pocketfarm::opencl {

Status Kernels::prepare(const Bundle& bundle, cl_context context, SetupLog& log) {
  plan_ = &bundle.plan;
  ProgramBuilder builder(library_, device_, context, cache_dir_, log);
  if (auto error = build(bundle, builder, log)) return error;
  if (auto error = make_all(log)) return error;
  save_binaries(bundle, builder, log);
  return kOk;
}

Status Kernels::build(const Bundle& bundle, ProgramBuilder& builder, SetupLog& log) {
  const int64_t start_ns = boottime_ns();
  size_t cached = 0;
  for (const Program& program : plan_->programs) {
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

Status Kernels::make_all(SetupLog& log) {
  const int64_t start_ns = boottime_ns();
  kernels_.resize(plan_->steps.size());
  size_t count = 0;
  for (const Step& step : plan_->steps) {
    if (step.kind != Step::Kind::dispatch) continue;
    auto kernel = make(plan_->programs[step.program]);
    if (!kernel) return kernel.error();
    kernels_[step.index] = std::move(*kernel);
    ++count;
  }
  log.record("pipeline", start_ns, std::to_string(count) + " kernels");
  return kOk;
}

// Buffers, and all scalars as one.
size_t argument_count(const Program& program) {
  size_t scalars = 0;
  for (const Parameter& parameter : program.parameters)
    scalars += parameter.kind == Parameter::Kind::i32 || parameter.kind == Parameter::Kind::f32;
  return program.parameters.size() - scalars + (scalars > 0);
}

Result<Owned<cl_kernel>> Kernels::make(const Program& program) {
  const std::string name = "program `" + program.id + "`, kernel `" + program.kernel + "`";
  cl_int code = CL_SUCCESS;
  const cl_program built = built_[{program.opencl->file, program.opencl->options}].program.get();
  Owned<cl_kernel> made(library_.clCreateKernel(built, program.kernel.c_str(), &code), library_.clReleaseKernel);
  if (code == CL_INVALID_KERNEL_NAME) return Error{Code::plan_invalid, name + ": not in its source"};
  if (code == CL_OUT_OF_RESOURCES) return refused(program, 0, "; clCreateKernel: CL_OUT_OF_RESOURCES");
  if (code != CL_SUCCESS) return cl_error(name + ": clCreateKernel", code);
  const cl_kernel kernel = made.get();
  cl_uint count = 0;
  library_.clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, nullptr);
  if (const size_t given = argument_count(program); count != given)
    return Error{Code::plan_invalid, name + ": takes " + std::to_string(count) + " arguments, the plan gives " +
                                         std::to_string(given)};
  const uint64_t limit = allowed_group(program, kernel);
  size_t declared[3] = {0, 0, 0};
  library_.clGetKernelWorkGroupInfo(kernel, device_.id, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof declared, declared,
                                    nullptr);
  // NVIDIA says 256 of kernels that were compiled for 512 or 1024; what a kernel declares, the launch decides on
  const bool is_declared = declared[0] * declared[1] * declared[2] == program.work_group_size();
  if (!is_declared && limit > 0 && program.work_group_size() > limit)
    return refused(program, limit, "");
  return made;
}

uint64_t Kernels::allowed_group(const Program& program, cl_kernel kernel) const {
  if (const uint64_t set = environment_.kernel_limit(program.kernel)) return set;
  size_t limit = 0;
  library_.clGetKernelWorkGroupInfo(kernel, device_.id, CL_KERNEL_WORK_GROUP_SIZE, sizeof limit, &limit, nullptr);
  return limit;
}

Error Kernels::refused(const Program& program, uint64_t allowed, const std::string& why) const {
  const uint64_t asked = program.work_group_size();
  const std::string told = allowed > 0 && allowed < asked ? "; this kernel allows " + std::to_string(allowed) +
                                                                " on this device, " + std::to_string(asked - allowed) + " fewer"
                                                          : "";
  return {Code::limit,
          "program `" + program.id + "`, kernel `" + program.kernel + "`: work-group of " + std::to_string(asked) + told + why,
          "",
          {program.kernel, asked, allowed}};
}

void Kernels::save_binaries(const Bundle& bundle, ProgramBuilder& builder, SetupLog& log) {
  if (cache_dir_.empty()) return;
  const int64_t start_ns = boottime_ns();
  size_t saved = 0;
  for (const auto& [key, built] : built_) {
    if (built.cached) continue;
    ++saved;
    const std::string failure = builder.save(built.program.get(), bundle.text(key.first), key.second);
    if (!failure.empty()) log.warn("program_cache", failure);
  }
  if (saved > 0) log.record("cache", start_ns, std::to_string(saved) + " program binaries kept");
}

Status Kernels::bind(const Memory& memory) {
  for (const Step& step : plan_->steps) {
    if (step.kind != Step::Kind::dispatch) continue;
    if (const cl_int code = set_arguments(step, memory))
      return cl_error("step " + std::to_string(step.index) + ": clSetKernelArg", code);
  }
  return kOk;
}

// An argument takes the host's time at every launch, so that all scalars are one: a structure, which comes last.
cl_int Kernels::set_arguments(const Step& step, const Memory& memory) const {
  const cl_kernel kernel = kernels_[step.index].get();
  std::vector<uint32_t> scalars;
  cl_uint next = 0;
  for (const Argument& argument : step.arguments) {
    if (argument.kind == Parameter::Kind::i32 || argument.kind == Parameter::Kind::f32) {
      scalars.emplace_back();
      std::memcpy(&scalars.back(), argument.kind == Parameter::Kind::i32 ? static_cast<const void*>(&argument.i32) : &argument.f32,
                  sizeof(uint32_t));
    } else if (const cl_int code = library_.clSetKernelArg(kernel, next++, sizeof(cl_mem), memory.argument(argument.buffer))) {
      return code;
    }
  }
  if (scalars.empty()) return CL_SUCCESS;
  return library_.clSetKernelArg(kernel, next, scalars.size() * sizeof(uint32_t), scalars.data());
}

template <typename Call>
Status Kernels::dispatch(const Step& step, const char* name, const Call& call) const {
  const Program& program = plan_->programs[step.program];
  const Extent& group = program.work_group;
  size_t global[3], local[3];
  for (int i = 0; i < 3; ++i) {
    local[i] = group[i];
    global[i] = (size_t{step.work_items[i]} + group[i] - 1) / group[i] * group[i];
  }
  const cl_kernel kernel = kernels_[step.index].get();
  const uint64_t set = environment_.kernel_limit(program.kernel);
  const cl_int code = set > 0 && program.work_group_size() > set ? CL_INVALID_WORK_GROUP_SIZE : call(kernel, global, local);
  if (code == CL_SUCCESS) return kOk;
  const Error error = cl_error(name, code);
  if (code != CL_INVALID_WORK_GROUP_SIZE && code != CL_OUT_OF_RESOURCES) return error;
  return refused(program, allowed_group(program, kernel), "; " + error.message);
}

Status Kernels::launch(const Step& step, const Order& order) const {
  return dispatch(step, "clEnqueueNDRangeKernel", [&](cl_kernel kernel, const size_t* global, const size_t* local) {
    return library_.clEnqueueNDRangeKernel(order.queue, kernel, 3, nullptr, global, local, order.waits(), order.events(),
                                           order.done);
  });
}

Status Kernels::record(const Step& step, RecordDispatch call, struct _cl_command_buffer_khr* commands) const {
  return dispatch(step, "clCommandNDRangeKernelKHR", [&](cl_kernel kernel, const size_t* global, const size_t* local) {
    return call(commands, nullptr, nullptr, kernel, 3, nullptr, global, local, 0, nullptr, nullptr, nullptr);
  });
}

}  // namespace pocketfarm::opencl
