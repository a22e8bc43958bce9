#include "plan_parsing.h"

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

// The steps of the next stage.
Stage range(const Reader& json, const Plan& plan) {
  const size_t expected = plan.stages.empty() ? 0 : plan.stages.back().end;
  Stage out;
  const int64_t steps = static_cast<int64_t>(plan.steps.size());
  out.begin = static_cast<size_t>(json.at("begin").integer(0, steps));
  out.end = static_cast<size_t>(json.at("end").integer(0, steps));
  if (out.begin != expected || out.end <= out.begin)
    json.fail("steps " + std::to_string(out.begin) + " to " + std::to_string(out.end) + ", where stages share out all steps in order, from " +
              std::to_string(expected) + " on");
  return out;
}

Stage stage(const Reader& json, const Names& buffers, const Plan& plan) {
  json.only({"name", "begin", "end", "epochs", "batches", "samples", "counter", "report", "classifies"});
  Stage out = range(json, plan);
  out.name = json.at("name").text();
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

void check_loops(const Reader& json, const Plan& plan) {
  if (!plan.stages.empty() && plan.stages.back().end != plan.steps.size())
    json.fail("steps from " + std::to_string(plan.stages.back().end) + " on are of no stage");
  for (const Step& step : plan.steps)
    if (!plan.stages.empty() && (step.kind == Step::Kind::swap_out || step.kind == Step::Kind::swap_in))
      json.fail("step " + std::to_string(step.index) + " swaps, which a loop cannot");
}

size_t holder(const Reader& json, const Names& buffers, const Plan& plan, int64_t count, bool whole) {
  const size_t found = buffers.find(json);
  const Buffer& buffer = plan.buffers[found];
  const bool fits = whole ? buffer.type == Type::i32 || buffer.type == Type::i64 : buffer.type == Type::f32;
  if (!fits || plan.beside(found) || buffer.bytes / size_of(buffer.type) < static_cast<uint64_t>(count))
    json.fail("buffer `" + buffer.id + "` does not hold " + std::to_string(count) + (whole ? " whole numbers" : " numbers of type f32"));
  return found;
}

Pass pass(const Reader& json, const Names& buffers, const Plan& plan) {
  json.only({"begin", "end", "tokens", "ids", "position", "logits", "rows", "vocabulary"});
  Pass out;
  out.stage = plan.stages.size() - 1;
  out.tokens = json.at("tokens").integer(1, kMostTurns);
  out.rows = json.at("rows").integer(1, out.tokens);
  if (out.rows != 1 && out.rows != out.tokens) json.fail("rows of logits are one, or one for each token");
  out.vocabulary = json.at("vocabulary").integer(1, std::numeric_limits<int32_t>::max());
  out.ids = holder(json.at("ids"), buffers, plan, plan.sequences * out.tokens, true);
  out.position = holder(json.at("position"), buffers, plan, 1, true);
  out.logits = holder(json.at("logits"), buffers, plan, plan.sequences * out.rows * out.vocabulary, false);
  return out;
}

}  // namespace

void parse_stages(const Reader& json, const Names& buffers, Plan& plan) {
  for (const Reader& item : json.items(kMostStages)) plan.stages.push_back(stage(item, buffers, plan));
  check_loops(json, plan);
}

void parse_generation(const Reader& json, const Names& buffers, Plan& plan) {
  json.only({"capacity", "sequences", "passes"});
  if (!plan.stages.empty() || !plan.inputs.empty() || !plan.outputs.empty())
    json.fail("a plan that generates has no stages, inputs and outputs");
  constexpr int64_t kMostTokens = 1'000'000'000;
  plan.capacity = json.at("capacity").integer(1, kMostTokens);
  constexpr int64_t kMostSequences = 4096;
  if (json.has("sequences")) plan.sequences = json.at("sequences").integer(1, kMostSequences);
  for (const Reader& item : json.at("passes").items(kMostStages)) {
    plan.stages.push_back(range(item, plan));
    plan.passes.push_back(pass(item, buffers, plan));
  }
  if (plan.passes.empty() || plan.passes.back().tokens != 1) json.fail("the last pass must take one token");
  check_loops(json, plan);
}

}  // namespace pocketfarm
