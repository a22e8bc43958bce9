#include "memory.h"

#include <cstring>

namespace pocketfarm::opencl {

Status Memory::add_pool(const Pool& pool, cl_context context) {
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

Status Memory::add_swapped(size_t index, uint64_t bytes, cl_context context, cl_command_queue queue) {
  Swapped& out = swapped_[index];
  const std::string what = "host memory of " + std::to_string(bytes) + " bytes for what is swapped out: ";
  cl_int code = CL_SUCCESS;
  out.memory = {library_.clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, nullptr, &code),
                library_.clReleaseMemObject};
  if (code != CL_SUCCESS) return cl_error(what + "clCreateBuffer", code);
  out.place = library_.clEnqueueMapBuffer(queue, out.memory.get(), CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0,
                                          nullptr, nullptr, &code);
  return code == CL_SUCCESS ? kOk : Status(cl_error(what + "clEnqueueMapBuffer", code));
}

Status Memory::allocate(const Plan& plan, cl_context context, cl_command_queue queue) {
  for (const Pool& pool : plan.pools) {
    shared_.push_back(pool.host_visible);
    if (auto error = add_pool(pool, context)) return error;
  }
  for (const Buffer& buffer : plan.buffers)
    if (auto error = add_buffer(buffer)) return error;
  swapped_.resize(plan.buffers.size());
  const std::vector<uint64_t> bytes = plan.host_bytes();
  for (size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] > 0)
      if (auto error = add_swapped(i, bytes[i], context, queue)) return error;
  return kOk;
}

Status Memory::upload(const Bundle& bundle, cl_command_queue queue) {
  for (size_t i = 0; i < bundle.plan.buffers.size(); ++i) {
    const Buffer& item = bundle.plan.buffers[i];
    if (!item.blob_offset) continue;
    if (item.offloaded) {
      std::memcpy(swapped_[i].place, bundle.content(item), item.bytes);
      continue;
    }
    if (shared_[item.pool]) {
      if (auto error = write(item, i, bundle.content(item), item.bytes, queue)) return error;
      continue;
    }
    const cl_int code = library_.clEnqueueWriteBuffer(queue, buffer(i), CL_FALSE, 0, item.bytes, bundle.content(item), 0,
                                                      nullptr, nullptr);
    if (code != CL_SUCCESS) return cl_error("buffer `" + item.id + "`: clEnqueueWriteBuffer", code);
  }
  if (const cl_int code = library_.clFinish(queue)) return cl_error("upload: clFinish", code);
  return kOk;
}

Status Memory::mapped(const Buffer& buffer, size_t index, cl_map_flags flags, uint64_t bytes, cl_command_queue queue,
                      const std::function<void(void*)>& use) {
  cl_int code = CL_SUCCESS;
  void* place = library_.clEnqueueMapBuffer(queue, this->buffer(index), CL_TRUE, flags, 0, bytes, 0, nullptr, nullptr, &code);
  if (code != CL_SUCCESS) return cl_error("buffer `" + buffer.id + "`: clEnqueueMapBuffer", code);
  use(place);
  code = library_.clEnqueueUnmapMemObject(queue, this->buffer(index), place, 0, nullptr, nullptr);
  if (code == CL_SUCCESS) code = library_.clFinish(queue);
  return code == CL_SUCCESS ? kOk : Status(cl_error("buffer `" + buffer.id + "`: clEnqueueUnmapMemObject", code));
}

Status Memory::write(const Buffer& buffer, size_t index, const void* data, uint64_t bytes, cl_command_queue queue) {
  if (shared_[buffer.pool])  // all of the range is overwritten
    return mapped(buffer, index, CL_MAP_WRITE_INVALIDATE_REGION, bytes, queue,
                  [&](void* place) { std::memcpy(place, data, bytes); });
  const cl_int code = library_.clEnqueueWriteBuffer(queue, this->buffer(index), CL_TRUE, 0, bytes, data, 0, nullptr, nullptr);
  return code == CL_SUCCESS ? kOk : Status(cl_error("buffer `" + buffer.id + "`: clEnqueueWriteBuffer", code));
}

Status Memory::read(const Buffer& buffer, size_t index, void* data, uint64_t bytes, cl_command_queue queue) {
  if (shared_[buffer.pool])
    return mapped(buffer, index, CL_MAP_READ, bytes, queue, [&](void* place) { std::memcpy(data, place, bytes); });
  const cl_int code = library_.clEnqueueReadBuffer(queue, this->buffer(index), CL_TRUE, 0, bytes, data, 0, nullptr, nullptr);
  return code == CL_SUCCESS ? kOk : Status(cl_error("buffer `" + buffer.id + "`: clEnqueueReadBuffer", code));
}

}  // namespace pocketfarm::opencl
