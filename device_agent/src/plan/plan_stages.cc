#include "plan_stages.h"

#include <limits>

namespace pocketfarm {
namespace {

constexpr int64_t kMostTurns = 1'000'000;
constexpr size_t kMostStages = 1000;

size_t variable(const Reader& json, const Names& buffers, const Plan& plan, uint64_t least) {
  const size_t found = buffers.find(json);
  const Buffer& buffer = plan.buffers[found];
  if (!buffer.variable || buffer.bytes < least)
    json.fail("buffer `" + buffer.id + "` is no variable of at least " + std::to_string(least) + " bytes");
  return found;
}

Stage stage(const Reader& json, const Names& buffers, const Plan& plan, size_t expected) {
  json.only({"name", "begin", "end", "epochs", "batches", "samples", "counter", "report", "classifies"});
  Stage out;
  out.name = json.at("name").text();
  const int64_t steps = static_cast<int64_t>(plan.steps.size());
  out.begin = static_cast<size_t>(json.at("begin").integer(0, steps));
  out.end = static_cast<size_t>(json.at("end").integer(0, steps));
  if (out.begin != expected || out.end <= out.begin)
    json.fail("steps " + std::to_string(out.begin) + " to " + std::to_string(out.end) + ", where stages share out all steps in order, from " +
              std::to_string(expected) + " on");
  out.epochs = json.at("epochs").integer(1, kMostTurns);
  out.batches = json.at("batches").integer(1, kMostTurns);
  if (out.epochs * out.batches > std::numeric_limits<int32_t>::max())
    json.fail(std::to_string(out.epochs) + " epochs of " + std::to_string(out.batches) + " batches are more than a counter holds", Code::limit);
  out.samples = json.at("samples").integer(1, std::numeric_limits<int32_t>::max());
  out.counter = variable(json.at("counter"), buffers, plan, sizeof(int32_t));
  out.report = variable(json.at("report"), buffers, plan, 2 * sizeof(float));
  out.classifies = json.has("classifies") && json.at("classifies").flag();
  return out;
}

}  // namespace

void parse_stages(const Reader& json, const Names& buffers, Plan& plan) {
  size_t expected = 0;
  for (const Reader& item : json.items(kMostStages)) {
    plan.stages.push_back(stage(item, buffers, plan, expected));
    expected = plan.stages.back().end;
  }
  if (!plan.stages.empty() && expected != plan.steps.size())
    json.fail("steps from " + std::to_string(expected) + " on are of no stage");
  for (const Step& step : plan.steps)
    if (!plan.stages.empty() && (step.kind == Step::Kind::swap_out || step.kind == Step::Kind::swap_in))
      json.fail("step " + std::to_string(step.index) + " swaps, which a loop cannot");
}

}  // namespace pocketfarm
