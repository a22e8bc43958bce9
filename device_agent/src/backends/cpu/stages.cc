#include "stages.h"

#include <algorithm>

namespace pocketfarm::cpu {
namespace {

// Kinds of steps by how their kernels' names begin: convolutions and other products; activations and other elementwise
// steps; what is in neither, pooling and the rest.
const std::vector<std::vector<const char*>> kKinds = {
    {"conv2d", "winograd", "depthwise", "dense", "matmul", "product", "im2col"},
    {"map", "binary", "affine", "activate", "instance_norm", "lrn", "row_norm"},
};

size_t kind_of(const Plan& plan, const Step& step) {
  size_t kind = 0;
  const auto is_of = [&](const std::vector<const char*>& words) {
    return step.kind == Step::Kind::dispatch && std::any_of(words.begin(), words.end(), [&](const char* word) {
             return plan.programs[step.program].kernel.rfind(word, 0) == 0;
           });
  };
  while (kind < kKinds.size() && !is_of(kKinds[kind])) ++kind;
  return kind;
}

// Stages are numbered in the order in which a frame first comes to them.
void number(std::vector<size_t>& stages) {
  std::vector<size_t> seen;
  for (size_t& stage : stages) {
    auto found = std::find(seen.begin(), seen.end(), stage);
    if (found == seen.end()) found = seen.insert(seen.end(), stage);
    stage = static_cast<size_t>(found - seen.begin());
  }
}

std::vector<Segment> by_kind(int threads, const Plan& plan) {
  std::vector<size_t> stages;
  for (const Step& step : plan.steps) stages.push_back(std::min(kind_of(plan, step), static_cast<size_t>(threads - 1)));
  number(stages);
  return runs(stages);
}

size_t stages_in(const std::vector<Segment>& route) {
  size_t count = 0;
  for (const Segment& segment : route) count = std::max(count, segment.stage + 1);
  return count;
}

Error refused(const CpuUse& use, const std::string& why) {
  return {Code::usage, std::string("--pipeline ") + word(use.pipeline) + " with " + std::to_string(use.threads) +
                           " threads: " + why};
}

}  // namespace

Result<std::vector<Segment>> route_of(const CpuUse& use, const Plan& plan, const std::vector<int64_t>& costs_ns) {
  const bool kinds = use.pipeline == CpuUse::Pipeline::by_kind;
  if (use.pipeline == CpuUse::Pipeline::across) return refused(use, "`across` is for a plan whose steps are on two APIs");
  if (use.threads < 2) return refused(use, "each stage has a thread, and a pipeline at least two stages");
  const auto route = kinds ? by_kind(std::min<int>(use.threads, kKinds.size() + 1), plan)
                           : balanced(costs_ns, static_cast<size_t>(use.threads));
  if (stages_in(route) < 2) return refused(use, "the plan's " + std::to_string(plan.steps.size()) + " steps make one stage only");
  return route;
}

std::string describe(const std::vector<Segment>& route) {
  std::string text = std::to_string(stages_in(route)) + " stages:";
  for (const Segment& segment : route)
    text += " " + std::to_string(segment.stage + 1) + "(" + std::to_string(segment.begin) + "-" +
            std::to_string(segment.end - 1) + ")";
  return text.size() <= 400 ? text : text.substr(0, 400) + " ...";
}

}  // namespace pocketfarm::cpu
