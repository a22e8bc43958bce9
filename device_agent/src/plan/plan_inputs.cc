// Whether a plan can run again on the inputs that are there.
#include <algorithm>

#include "plan.h"

namespace pocketfarm {
namespace {

bool overlap(const Buffer& one, const Buffer& other) {
  return one.pool == other.pool && one.offset < other.offset + other.bytes && other.offset < one.offset + one.bytes;
}

// Buffers that a step writes.
std::vector<size_t> written(const Plan& plan, const Step& step) {
  if (step.kind == Step::Kind::copy || step.kind == Step::Kind::transfer) return {step.target};
  if (step.kind == Step::Kind::swap_in) return {step.source};
  std::vector<size_t> out;
  if (step.kind != Step::Kind::dispatch) return out;
  const std::vector<Parameter>& parameters = plan.programs[step.program].parameters;
  for (size_t i = 0; i < step.arguments.size(); ++i)
    if (parameters[i].writes) out.push_back(step.arguments[i].buffer);
  return out;
}

}  // namespace

bool Plan::overwrites_inputs() const {
  return std::any_of(steps.begin(), steps.end(), [&](const Step& step) {
    const std::vector<size_t> targets = written(*this, step);
    return std::any_of(targets.begin(), targets.end(), [&](size_t target) {
      return std::any_of(inputs.begin(), inputs.end(),
                         [&](const Port& port) { return overlap(buffers[target], buffers[port.buffer]); });
    });
  });
}

}  // namespace pocketfarm
