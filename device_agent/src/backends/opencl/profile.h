// The time of each step on the device, from a queue that keeps events.
#pragma once

#include <vector>

#include "device.h"
#include "library.h"

namespace pocketfarm::opencl {

class Profile {
 public:
  Profile(const Library& library, std::vector<int64_t>& step_ns) : library_(library), step_ns_(step_ns) {}

  Status open(cl_context context, cl_device_id device);
  cl_command_queue queue() const { return queue_.get(); }
  // Takes over the event of a step that was enqueued; waits now and then, since drivers hold only so many.
  Status add(size_t step, cl_event event);
  // Waits for the steps that were added, and writes their times.
  Status collect();

 private:
  struct Item {
    Owned<cl_event> event;
    size_t step;
  };

  const Library& library_;
  std::vector<int64_t>& step_ns_;
  Owned<cl_command_queue> queue_;
  std::vector<Item> batch_;
};

}  // namespace pocketfarm::opencl
