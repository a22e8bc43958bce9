// The pools and buffers of a plan on an OpenCL device.
#pragma once

#include <functional>
#include <vector>

#include "plan/bundle.h"
#include "library.h"

namespace pocketfarm::opencl {

class Memory {
 public:
  explicit Memory(const Library& library) : library_(library) {}

  // One allocation per pool, one sub-buffer per buffer that does not start a pool, host memory for what is swapped out.
  Status allocate(const Plan& plan, cl_context context, cl_command_queue queue);
  // Waits for every write.
  Status upload(const Bundle& bundle, cl_command_queue queue);
  cl_mem buffer(size_t index) const { return views_[index].get() != nullptr ? views_[index].get() : whole_[index]; }
  const cl_mem* argument(size_t index) const {
    return views_[index].get() != nullptr ? views_[index].address() : &whole_[index];
  }
  // Where a swapped buffer's content waits; null where the plan never swaps it.
  void* swapped(size_t index) const { return swapped_[index].place; }
  uint64_t bytes() const { return bytes_; }

  // Wait until the bytes are there. Where host and device both see the pool, it is mapped; else the driver copies.
  Status write(const Buffer& buffer, size_t index, const void* data, uint64_t bytes, cl_command_queue queue);
  Status read(const Buffer& buffer, size_t index, void* data, uint64_t bytes, cl_command_queue queue);

 private:
  Status add_pool(const Pool& pool, cl_context context);
  Status add_buffer(const Buffer& buffer);
  Status add_swapped(size_t index, uint64_t bytes, cl_context context, cl_command_queue queue);
  Status mapped(const Buffer& buffer, size_t index, cl_map_flags flags, uint64_t bytes, cl_command_queue queue,
                const std::function<void(void*)>& use);

  // Host memory that the driver allocates, mapped for good: drivers keep it locked, so that the device copies it without a
  // detour. From other memory a PCIe device copies several times slower.
  struct Swapped {
    Owned<cl_mem> memory;
    void* place = nullptr;
  };

  const Library& library_;
  std::vector<Owned<cl_mem>> pools_;
  std::vector<Owned<cl_mem>> views_;  // destroyed before the pools
  std::vector<cl_mem> whole_;
  std::vector<bool> shared_;  // of each pool: whether the host sees it
  std::vector<Swapped> swapped_;
  uint64_t bytes_ = 0;
};

}  // namespace pocketfarm::opencl
