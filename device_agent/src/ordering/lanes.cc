#include "order.h"

#include <algorithm>

namespace pocketfarm {
namespace {

bool clash(const std::vector<Range>& a, const std::vector<Range>& b) {
  return std::any_of(a.begin(), a.end(), [&](const Range& one) {
    return std::any_of(b.begin(), b.end(), [&](const Range& other) { return one.clashes(other); });
  });
}

}  // namespace

Lanes Lanes::of(const Plan& plan) {
  Lanes out;
  if (std::all_of(plan.steps.begin(), plan.steps.end(), [](const Step& step) { return lane_of(step) == 0; })) return out;
  out.waits.resize(plan.steps.size());
  out.awaited.resize(plan.steps.size());
  std::vector<std::vector<Range>> touched;
  std::vector<size_t> before[kLanes];  // the steps of each lane so far
  size_t ended[kLanes][kLanes] = {};   // what a lane knows: so many steps of another have ended
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const size_t own = lane_of(plan.steps[i]);
    touched.push_back(accesses(plan, plan.steps[i]));
    for (size_t other = 0; other < kLanes; ++other)
      for (size_t at = before[other].size(); other != own && at > ended[own][other]; --at) {
        const size_t step = before[other][at - 1];
        if (!clash(touched[step], touched[i])) continue;
        out.waits[i].push_back(step);
        out.awaited[step] = true;
        ended[own][other] = at;
      }
    before[own].push_back(i);
  }
  return out;
}

}  // namespace pocketfarm
