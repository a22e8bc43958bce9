// Inter-frame pipeline: stages on threads of their own, and successive frames in different stages at the same time.
// Source: Gao, Zhang and Mei's parallel Caffe for phones (2018), where convolution, activation and pooling are stages.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "receiver.h"
#include "thread_pool.h"

namespace pocketfarm::cpu {

// Consecutive steps that one stage executes; a frame visits its segments in order.
struct Segment {
  size_t stage = 0;
  size_t begin = 0, end = 0;  // steps in order of execution
};

// Splits steps of these costs into at most `stages` runs of consecutive ones, so that the dearest costs least.
std::vector<Segment> balanced(const std::vector<int64_t>& costs, size_t stages);
// A segment for each run of steps of one stage.
std::vector<Segment> runs(const std::vector<size_t>& stage_of_step);

class Pipeline {
 public:
  // Executes segment `segment` of frame `frame` in the memory of `slot`; the pool has one thread, the stage's own.
  using Work = std::function<void(int64_t frame, size_t slot, const Segment& segment, ThreadPool& pool)>;

  // `cores`: the stage s is bound to the core s, modulo their number; empty: stages may run anywhere.
  Pipeline(std::vector<Segment> route, const std::vector<int>& cores, bool look);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;

  size_t stages() const { return stages_.size(); }
  size_t slots() const { return stages_.size() + 1; }  // one frame in each stage, and one that waits before the first
  // Sends `frames` frames through; returns the slot of the last one.
  size_t run(int64_t frames, const Work& work);

 private:
  struct Item {
    int64_t frame = -1;  // -1: the stage ends
    size_t slot = 0;
    size_t segment = 0;
  };
  struct Stage {
    explicit Stage(int64_t look_ns) : receiver(look_ns) {}
    Receiver<Item> receiver;
    ThreadPool pool{1};
    std::thread thread;
  };

  void serve(Stage& stage);

  const std::vector<Segment> route_;
  std::vector<std::unique_ptr<Stage>> stages_;
  Receiver<Item> done_{0};
  const Work* work_ = nullptr;
};

}  // namespace pocketfarm::cpu
