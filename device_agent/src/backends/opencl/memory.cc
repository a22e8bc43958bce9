#include "memory.h"

namespace pocketfarm::opencl {

Status Memory::add_image(const Pool& pool, cl_context context) {
  const cl_image_format format{CL_RGBA, static_cast<cl_channel_type>(pool.image->half ? CL_HALF_FLOAT : CL_FLOAT)};
  cl_image_desc size{};
  size.image_type = CL_MEM_OBJECT_IMAGE2D;
  size.image_width = pool.image->width;
  size.image_height = pool.image->height;
  cl_int code = CL_SUCCESS;
  pools_.emplace_back(library_.clCreateImage(context, CL_MEM_READ_WRITE, &format, &size, nullptr, &code),
                      library_.clReleaseMemObject);
  if (code != CL_SUCCESS)
    return cl_error("pool `" + pool.id + "`: clCreateImage of " + std::to_string(pool.image->width) + " x " +
                        std::to_string(pool.image->height) + " texels", code);
  bytes_ += pool.bytes;
  return kOk;
}

Status Memory::add_pool(const Pool& pool, cl_context context) {
  if (pool.image) return add_image(pool, context);
  const cl_mem_flags flags = CL_MEM_READ_WRITE | (pool.host_visible ? CL_MEM_ALLOC_HOST_PTR : 0);
  cl_int code = CL_SUCCESS;
  pools_.emplace_back(library_.clCreateBuffer(context, flags, pool.bytes, nullptr, &code), library_.clReleaseMemObject);
  if (code != CL_SUCCESS)
    return cl_error("pool `" + pool.id + "`: clCreateBuffer of " + std::to_string(pool.bytes) + " bytes", code);
  bytes_ += pool.bytes;
  return kOk;
}

Status Memory::add_buffer(const Buffer& buffer) {
  const cl_mem pool = pools_[buffer.pool].get();
  whole_.push_back(pool);
  views_.emplace_back();
  if (buffer.offset == 0) return kOk;
  const cl_buffer_region region{static_cast<size_t>(buffer.offset), static_cast<size_t>(buffer.bytes)};
  cl_int code = CL_SUCCESS;
  views_.back() = Owned<cl_mem>(
      library_.clCreateSubBuffer(pool, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &code),
      library_.clReleaseMemObject);
  if (code != CL_SUCCESS) return cl_error("buffer `" + buffer.id + "`: clCreateSubBuffer", code);
  return kOk;
}

Status Memory::allocate(const Plan& plan, cl_context context) {
  for (const Pool& pool : plan.pools)
    if (auto error = add_pool(pool, context)) return error;
  for (const Buffer& buffer : plan.buffers)
    if (auto error = add_buffer(buffer)) return error;
  swapped_.resize(plan.buffers.size());
  for (const Step& step : plan.steps)
    if (step.kind == Step::Kind::swap_out) swapped_[step.target].resize(step.bytes);
  return kOk;
}

Status Memory::upload(const Bundle& bundle, cl_command_queue queue) {
  for (size_t i = 0; i < bundle.plan.buffers.size(); ++i) {
    const Buffer& item = bundle.plan.buffers[i];
    if (!item.blob_offset) continue;
    const cl_int code = library_.clEnqueueWriteBuffer(queue, buffer(i), CL_FALSE, 0, item.bytes, bundle.content(item), 0,
                                                      nullptr, nullptr);
    if (code != CL_SUCCESS) return cl_error("buffer `" + item.id + "`: clEnqueueWriteBuffer", code);
  }
  if (const cl_int code = library_.clFinish(queue)) return cl_error("upload: clFinish", code);
  return kOk;
}

}  // namespace pocketfarm::opencl
