#include "recording.h"

#include <algorithm>
#include <set>

namespace pocketfarm::opencl {
namespace {

constexpr const char* kExtension = "cl_khr_command_buffer";
constexpr cl_device_info kCapabilities = 0x12A9, kQueueProperties = 0x12AA;
constexpr cl_bitfield kCanRunAgain = 1 << 2;
constexpr cl_ulong kFlags = 0x1293, kRunsAgain = 1 << 0;

template <typename T>
bool find(const Library& library, cl_platform_id platform, const char* name, T& call) {
  call = reinterpret_cast<T>(library.clGetExtensionFunctionAddressForPlatform(platform, name));
  return call != nullptr;
}

}  // namespace

bool Recordings::load() {
  if (library_.clGetExtensionFunctionAddressForPlatform == nullptr || !offers(library_, device_.id, kExtension)) return false;
  cl_bitfield capabilities = 0, needed = 0;
  library_.clGetDeviceInfo(device_.id, kCapabilities, sizeof capabilities, &capabilities, nullptr);
  library_.clGetDeviceInfo(device_.id, kQueueProperties, sizeof needed, &needed, nullptr);
  const auto found = [&](const char* name, auto& call) { return find(library_, device_.platform, name, call); };
  return (capabilities & kCanRunAgain) != 0 && needed == 0 && found("clCreateCommandBufferKHR", calls_.create) &&
         found("clFinalizeCommandBufferKHR", calls_.finalize) && found("clEnqueueCommandBufferKHR", calls_.enqueue) &&
         found("clReleaseCommandBufferKHR", calls_.release) && found("clCommandNDRangeKernelKHR", calls_.dispatch);
}

// On a CPU a launch takes no time that a command buffer saves, and PoCL's take more.
Status Recordings::record(const Plan& plan, cl_command_queue queue, SetupLog& log) {
  const bool must = asked_ == "recorded";
  if (!asked_.empty() && asked_ != "single" && !must)
    return Error{Code::usage, "POCKETFARM_LAUNCH is `" + asked_ + "`; it may be `single`, `recorded`, or empty"};
  if (asked_ == "single" || (!must && (device_.type & CL_DEVICE_TYPE_GPU) == 0)) return kOk;
  if (!load()) {
    if (!must) return kOk;
    return Error{Code::unsupported, std::string("launch `recorded` needs a driver with ") + kExtension +
                                        " whose command buffers may be handed over again while they are computed; `" +
                                        device_.facts.device_name + "` has none: use `auto` or `single`"};
  }
  const int64_t start_ns = boottime_ns();
  const auto recorded = record_all(plan, queue);
  if (!recorded) {
    runs_.clear();
    if (must) return recorded.error();
    log.warn("command_buffer", recorded.error().message + "; steps are launched one by one");
    return kOk;
  }
  log.record("record", start_ns, std::to_string(*recorded) + " steps in " + std::to_string(runs_.size()) + " command buffers");
  return kOk;
}

Result<size_t> Recordings::record_all(const Plan& plan, cl_command_queue queue) {
  size_t recorded = 0;
  std::set<size_t> ends{plan.steps.size()};
  for (const Stage& stage : plan.stages) ends.insert({stage.begin, stage.end});
  for (size_t begin = 0; begin < plan.steps.size();) {
    size_t end = begin;
    while (end < *ends.upper_bound(begin) && plan.steps[end].kind == Step::Kind::dispatch) ++end;
    if (end >= begin + 2) {
      if (auto error = record_run(plan, begin, end, queue)) return *error;
      recorded += end - begin;
    }
    begin = std::max(end, begin + 1);
  }
  return recorded;
}

Status Recordings::record_run(const Plan& plan, size_t begin, size_t end, cl_command_queue queue) {
  cl_int code = CL_SUCCESS;
  const cl_ulong properties[] = {kFlags, kRunsAgain, 0};
  Owned<Commands> commands(calls_.create(1, &queue, properties, &code), calls_.release);
  if (code != CL_SUCCESS) return cl_error("clCreateCommandBufferKHR", code);
  for (size_t i = begin; i < end; ++i) {
    auto error = kernels_.record(plan.steps[i], calls_.dispatch, commands.get());
    if (error) return error;
  }
  if ((code = calls_.finalize(commands.get())) != CL_SUCCESS) return cl_error("clFinalizeCommandBufferKHR", code);
  runs_.emplace(begin, Run{end, std::move(commands)});
  return kOk;
}

size_t Recordings::end_of(size_t begin, size_t end) const {
  const auto found = runs_.find(begin);
  return found == runs_.end() || found->second.end > end ? begin : found->second.end;
}

Status Recordings::enqueue(size_t begin, cl_command_queue queue) const {
  const cl_int code = calls_.enqueue(1, &queue, runs_.at(begin).commands.get(), 0, nullptr, nullptr);
  if (code == CL_SUCCESS) return kOk;
  return cl_error("clEnqueueCommandBufferKHR of the steps from " + std::to_string(begin), code);
}

}  // namespace pocketfarm::opencl
