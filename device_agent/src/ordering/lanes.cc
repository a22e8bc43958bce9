#include "lanes.h"

#include <algorithm>

#include "accesses.h"

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
  if (std::none_of(plan.steps.begin(), plan.steps.end(), is_swap)) return out;
  out.wait.resize(plan.steps.size());
  out.awaited.resize(plan.steps.size());
  std::vector<std::vector<Range>> touched;
  std::vector<size_t> before[2];      // the steps of each lane so far
  size_t ended[2] = {0, 0};           // of these, how many the other lane knows to have ended
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const bool swaps = is_swap(plan.steps[i]);
    touched.push_back(accesses(plan, plan.steps[i]));
    const std::vector<size_t>& others = before[!swaps];
    for (size_t at = others.size(); at > ended[!swaps]; --at) {
      if (!clash(touched[others[at - 1]], touched[i])) continue;
      out.wait[i] = others[at - 1];
      out.awaited[others[at - 1]] = true;
      ended[!swaps] = at;
    }
    before[swaps].push_back(i);
  }
  return out;
}

}  // namespace pocketfarm
