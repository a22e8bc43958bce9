// An inference in two queues: swaps in one, all other steps in the other.
#pragma once

#include <array>
#include <vector>

#include "ordering/lanes.h"
#include "recorder.h"

namespace pocketfarm::vulkan {

// Each queue's steps are cut where one queue waits for the other; a semaphore for each queue counts the parts that ended.
class Overlap {
 public:
  // Of a plan that swaps, on a device with a queue for swaps.
  static Result<Overlap> make(const Device& device, const Plan& plan, const Lanes& lanes, const Recorder& recorder);
  // Returns when both queues have ended.
  Status run();
  size_t parts() const { return parts_.size(); }

 private:
  struct Part {
    Queue queue;
    uint64_t number;  // in its queue, from 1 on
    uint64_t after;   // the part of the other queue that must have ended; 0: none
    std::vector<size_t> steps;
    VkCommandBuffer commands = nullptr;
  };

  explicit Overlap(const Device& device) : device_(&device) {}
  void divide(const Plan& plan, const Lanes& lanes);
  Status make_semaphores();
  Status submit(const Part& part) const;

  const Device* device_;
  std::vector<Part> parts_;                     // in the order of their first steps
  std::array<uint64_t, 2> count_{};             // of each queue, parts of an inference
  std::array<uint64_t, 2> ended_{};             // of each queue, parts of the inferences before
  std::array<Owned<VkSemaphore>, 2> semaphores_;  // of each queue
};

}  // namespace pocketfarm::vulkan
