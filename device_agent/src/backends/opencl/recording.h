// A plan's steps in command buffers (cl_khr_command_buffer): recorded once, then one call of the host for many steps.
#pragma once

#include <map>
#include <string>

#include "device/environment.h"
#include "journal/setup_log.h"
#include "device.h"
#include "kernels.h"
#include "library.h"

namespace pocketfarm::opencl {

class Recordings {
 public:
  Recordings(const Library& library, const Device& device, const Kernels& kernels, std::string asked)
      : library_(library), device_(device), kernels_(kernels), asked_(std::move(asked)) {}

  // Every run of steps that dispatch, of at least two, once their arguments are bound; no stage of training ends within one.
  // The queue is in order. As `Environment::launch` asks; where it does not, on a GPU whose driver has command buffers that
  // may be handed over again while they are computed, and a driver that fails at them gets single steps, with a warning.
  Status record(const Plan& plan, cl_command_queue queue, SetupLog& log);
  // Behind the run that begins at a step and ends by `end`; `begin` itself where there is none.
  size_t end_of(size_t begin, size_t end) const;
  Status enqueue(size_t begin, cl_command_queue queue) const;

 private:
  // As the extension declares them: Khronos' headers hide what is provisional, each version in its own way.
  using Commands = struct _cl_command_buffer_khr*;
  struct Calls {
    Commands (*create)(cl_uint, const cl_command_queue*, const cl_ulong*, cl_int*) = nullptr;
    cl_int (*finalize)(Commands) = nullptr;
    cl_int (*enqueue)(cl_uint, cl_command_queue*, Commands, cl_uint, const cl_event*, cl_event*) = nullptr;
    cl_int (*release)(Commands) = nullptr;
    RecordDispatch dispatch = nullptr;
  };
  struct Run {
    size_t end;
    Owned<Commands> commands;
  };

  bool load();
  Result<size_t> record_all(const Plan& plan, cl_command_queue queue);
  Status record_run(const Plan& plan, size_t begin, size_t end, cl_command_queue queue);

  const Library& library_;
  const Device& device_;
  const Kernels& kernels_;
  const std::string asked_;
  Calls calls_;
  std::map<size_t, Run> runs_;  // by their first step
};

}  // namespace pocketfarm::opencl
