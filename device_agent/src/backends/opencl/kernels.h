// The kernels of a plan: one for each step that dispatches, its arguments bound.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plan/bundle.h"
#include "device/environment.h"
#include "journal/setup_log.h"
#include "device.h"
#include "library.h"
#include "memory.h"
#include "program_builder.h"

namespace pocketfarm::opencl {

// Where a step goes, after what, and what tells of its end.
struct Order {
  cl_command_queue queue = nullptr;
  cl_event* done = nullptr;        // null: nobody asks
  std::vector<cl_event> after = {};  // of other queues
  cl_uint waits() const { return static_cast<cl_uint>(after.size()); }
  const cl_event* events() const { return after.empty() ? nullptr : after.data(); }
};

// `clCommandNDRangeKernelKHR`, as the extension declares it.
using RecordDispatch = cl_int (*)(struct _cl_command_buffer_khr*, cl_command_queue, const void*, cl_kernel, cl_uint, const size_t*,
                                  const size_t*, const size_t*, cl_uint, const cl_uint*, cl_uint*, void*);

class Kernels {
 public:
  Kernels(const Library& library, const Device& device, const Environment& environment, std::string cache_dir)
      : library_(library), device_(device), environment_(environment), cache_dir_(std::move(cache_dir)) {}

  // Programs from the cache or from source, and their kernels; new binaries are kept. The plan must outlive this.
  Status prepare(const Bundle& bundle, cl_context context, SetupLog& log);
  // Arguments are set once, which a driver may take long over.
  Status bind(const Memory& memory);
  // `limit` with the kernel where the driver refuses its work-group.
  Status launch(const Step& step, const Order& order) const;
  // The same into a command buffer.
  Status record(const Step& step, RecordDispatch dispatch, struct _cl_command_buffer_khr* commands) const;

 private:
  using Source = std::pair<std::string, std::string>;  // file, options

  Status build(const Bundle& bundle, ProgramBuilder& builder, SetupLog& log);
  Status make_all(SetupLog& log);
  Result<Owned<cl_kernel>> make(const Program& program);
  uint64_t allowed_group(const Program& program, cl_kernel kernel) const;
  Error refused(const Program& program, uint64_t allowed, const std::string& why) const;
  void save_binaries(const Bundle& bundle, ProgramBuilder& builder, SetupLog& log);
  cl_int set_arguments(const Step& step, const Memory& memory) const;
  // What a call says that takes a kernel with its work-items and its work-group; `limit` where it is too large.
  template <typename Call>
  Status dispatch(const Step& step, const char* name, const Call& call) const;

  const Library& library_;
  const Device& device_;
  const Environment& environment_;
  const std::string cache_dir_;
  const Plan* plan_ = nullptr;
  std::map<Source, BuiltProgram> built_;
  std::vector<Owned<cl_kernel>> kernels_;  // by step
};

}  // namespace pocketfarm::opencl
