// An inference in several queues: swaps in two, one for each direction, all other steps in another.
#pragma once

#include <array>
#include <vector>

#include "ordering/order.h"
#include "recorder.h"

namespace pocketfarm::vulkan {

// Each queue's steps are cut where one queue waits for another; a semaphore for each queue counts the parts that ended.
class Overlap {
 public:
  // Of a plan that swaps, on a device with a queue for swaps.
  static Result<Overlap> make(const Device& device, const Plan& plan, const Lanes& lanes, const Recorder& recorder);
  // Returns when all queues have ended.
  Status run();
  size_t parts() const { return parts_.size(); }

 private:
  struct Part {
    Queue queue;
    uint64_t number;  // in its queue, from 1 on
    std::array<uint64_t, kLanes> after;  // of each queue, the part that must have ended; 0: none
    std::vector<size_t> steps;
    VkCommandBuffer commands = nullptr;
  };

  explicit Overlap(const Device& device) : device_(&device) {}
  void divide(const Plan& plan, const Lanes& lanes);
  Status make_semaphores();
  Status submit(const Part& part) const;

  const Device* device_;
  std::vector<Part> parts_;                     // in the order of their first steps
  std::array<uint64_t, kLanes> count_{};               // of each queue, parts of an inference
  std::array<uint64_t, kLanes> ended_{};               // of each queue, parts of the inferences before
  std::array<Owned<VkSemaphore>, kLanes> semaphores_;  // of each queue
};

}  // namespace pocketfarm::vulkan
