#include "pipeline.h"

#include <algorithm>
#include <numeric>

#include "device/affinity.h"
#include "system/thread.h"

namespace pocketfarm::cpu {
namespace {

constexpr int64_t kLookNs = 100'000;

// Runs of consecutive steps that each cost at most `limit`, as few as there can be.
std::vector<Segment> within(const std::vector<int64_t>& costs, int64_t limit) {
  std::vector<Segment> out;
  int64_t cost = 0;
  for (size_t step = 0; step < costs.size(); ++step) {
    if (out.empty() || cost + costs[step] > limit) {
      out.push_back({out.size(), step, step});
      cost = 0;
    }
    cost += costs[step];
    out.back().end = step + 1;
  }
  return out;
}

}  // namespace

std::vector<Segment> balanced(const std::vector<int64_t>& costs, size_t stages) {
  int64_t low = costs.empty() ? 0 : *std::max_element(costs.begin(), costs.end());
  int64_t high = std::accumulate(costs.begin(), costs.end(), int64_t{0});
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (within(costs, middle).size() <= stages) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return within(costs, low);
}

std::vector<Segment> runs(const std::vector<size_t>& stage_of_step) {
  std::vector<Segment> out;
  for (size_t step = 0; step < stage_of_step.size(); ++step) {
    if (out.empty() || out.back().stage != stage_of_step[step]) out.push_back({stage_of_step[step], step, step});
    out.back().end = step + 1;
  }
  return out;
}

Pipeline::Pipeline(std::vector<Segment> route, const std::vector<int>& cores, bool look) : route_(std::move(route)) {
  size_t count = 0;
  for (const Segment& segment : route_) count = std::max(count, segment.stage + 1);
  for (size_t i = 0; i < count; ++i) stages_.push_back(std::make_unique<Stage>(look ? kLookNs : 0));
  for (size_t i = 0; i < count; ++i)
    stages_[i]->thread = start_thread([this, i, cores] {
      if (!cores.empty()) pin_this_thread(cores[i % cores.size()]);
      serve(*stages_[i]);
    });
}

Pipeline::~Pipeline() {
  for (const auto& stage : stages_) stage->receiver.trigger({});
  for (const auto& stage : stages_) stage->thread.join();
}

void Pipeline::serve(Stage& stage) {
  while (true) {
    Item item = stage.receiver.take();
    if (item.frame < 0) return;
    (*work_)(item.frame, item.slot, route_[item.segment], stage.pool);
    if (++item.segment == route_.size()) {
      done_.trigger(item);
    } else {
      stages_[route_[item.segment].stage]->receiver.trigger(item);
    }
  }
}

// Frames never overtake each other: each receiver keeps the order in which they come, and all take the same route.
size_t Pipeline::run(int64_t frames, const Work& work) {
  work_ = &work;
  Receiver<Item>& first = stages_[route_.front().stage]->receiver;
  const int64_t ahead = std::min(frames, static_cast<int64_t>(slots()));
  for (int64_t i = 0; i < ahead; ++i) first.trigger({i, static_cast<size_t>(i), 0});
  size_t last = 0;
  for (int64_t ended = 0, next = ahead; ended < frames; ++ended) {
    last = done_.take().slot;
    if (next < frames) first.trigger({next++, last, 0});
  }
  return last;
}

}  // namespace pocketfarm::cpu
