#include "profile.h"

namespace pocketfarm::opencl {
namespace {

constexpr size_t kBatch = 512;  // events held at a time

}  // namespace

Status Profile::open(cl_context context, cl_device_id device) {
  cl_int code = CL_SUCCESS;
  queue_ = {library_.clCreateCommandQueue(context, device, CL_QUEUE_PROFILING_ENABLE, &code),
            library_.clReleaseCommandQueue};
  return code == CL_SUCCESS ? kOk : Status(cl_error("clCreateCommandQueue with profiling", code));
}

Status Profile::add(size_t step, cl_event event) {
  batch_.push_back({{event, library_.clReleaseEvent}, step});
  return batch_.size() < kBatch ? kOk : collect();
}

Status Profile::collect() {
  if (const cl_int code = library_.clFinish(queue_.get())) return cl_error("clFinish", code);
  for (const Item& item : batch_) {
    cl_ulong start = 0, end = 0;
    library_.clGetEventProfilingInfo(item.event.get(), CL_PROFILING_COMMAND_START, sizeof start, &start, nullptr);
    const cl_int code =
        library_.clGetEventProfilingInfo(item.event.get(), CL_PROFILING_COMMAND_END, sizeof end, &end, nullptr);
    if (code != CL_SUCCESS) return cl_error("clGetEventProfilingInfo", code);
    if (end > start) step_ns_[item.step] = static_cast<int64_t>(end - start);
  }
  batch_.clear();
  return kOk;
}

}  // namespace pocketfarm::opencl
