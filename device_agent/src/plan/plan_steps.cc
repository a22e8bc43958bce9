#include "plan_parsing.h"

#include <cmath>
#include <limits>

namespace pocketfarm {
namespace {

class StepParser {
 public:
  StepParser(const Names& programs, const Names& buffers, const Plan& plan)
      : programs_(programs), buffers_(buffers), plan_(plan) {}

  Step step(const Reader& json, size_t index) const;

 private:
  void dispatch(const Reader& json, Step& step) const;
  void copy(const Reader& json, Step& step) const;
  void swap(const Reader& json, Step& step) const;
  void transfer(const Reader& json, Step& step) const;
  Argument argument(const Reader& json) const;

  const Names& programs_;
  const Names& buffers_;
  const Plan& plan_;
};

Argument StepParser::argument(const Reader& json) const {
  json.only({"buffer", "part", "i32", "f32"});
  Argument out;
  if (json.has("buffer")) {
    out.buffer = buffers_.find(json.at("buffer"));
    const Buffer& buffer = plan_.buffers[out.buffer];
    out.end = buffer.bytes;
    if (json.has("part")) {
      const auto ends = json.at("part").items(2);
      if (ends.size() != 2) json.at("part").fail("a part has a first byte and an end");
      out.begin = ends[0].bytes();
      out.end = ends[1].bytes();
      if (out.begin >= out.end) json.at("part").fail("the part is empty");
      check_range(json, "buffer `" + buffer.id + "`", out.begin, out.end - out.begin, buffer.bytes);
    }
  } else if (json.has("i32")) {
    out.kind = Parameter::Kind::i32;
    using Limits = std::numeric_limits<int32_t>;
    out.i32 = static_cast<int32_t>(json.at("i32").integer(Limits::min(), Limits::max()));
  } else {
    out.kind = Parameter::Kind::f32;
    const double value = json.at("f32").number();
    if (std::abs(value) > double{std::numeric_limits<float>::max()}) json.at("f32").fail("does not fit a 32-bit float");
    out.f32 = static_cast<float>(value);
  }
  return out;
}

void StepParser::dispatch(const Reader& json, Step& step) const {
  json.only({"kind", "program", "layer", "work_items", "arguments", "flops", "bytes"});
  step.program = programs_.find(json.at("program"));
  step.work_items = parse_extent(json.at("work_items"), std::numeric_limits<int32_t>::max());
  for (const Reader& item : json.at("arguments").items(128)) step.arguments.push_back(argument(item));
  check_arguments(json.at("arguments"), plan_, plan_.programs[step.program], step.arguments);
}

void StepParser::copy(const Reader& json, Step& step) const {
  json.only({"kind", "layer", "source", "target", "source_offset", "target_offset", "bytes"});
  step.source = buffers_.find(json.at("source"));
  step.target = buffers_.find(json.at("target"));
  if (json.has("source_offset")) step.source_offset = json.at("source_offset").bytes();
  if (json.has("target_offset")) step.target_offset = json.at("target_offset").bytes();
  step.bytes = json.at("bytes").bytes(1);
  check_copy(json, plan_, step);
}

void StepParser::swap(const Reader& json, Step& step) const {
  json.only({"kind", "layer", "buffer", "host"});
  step.source = buffers_.find(json.at("buffer"));
  step.target = json.has("host") ? buffers_.find(json.at("host")) : step.source;
  step.bytes = plan_.buffers[step.source].bytes;
  if (plan_.buffers[step.target].bytes != step.bytes)
    json.fail("buffers `" + plan_.buffers[step.source].id + "` and `" + plan_.buffers[step.target].id +
              "` differ in size, so one has no place in the other's host memory");
}

void StepParser::transfer(const Reader& json, Step& step) const {
  json.only({"kind", "layer", "source", "target", "bytes"});
  step.source = buffers_.find(json.at("source"));
  step.target = buffers_.find(json.at("target"));
  step.bytes = json.at("bytes").bytes(1);
  if (step.source == step.target) json.fail("source and target are one buffer");
  if (plan_.api == Api::cpu) json.fail("a plan of the CPU's has nothing to transfer to");
  check_copy(json, plan_, step);
}

Step StepParser::step(const Reader& json, size_t index) const {
  Step out;
  const std::string kind = json.at("kind").word({"dispatch", "copy", "swap_out", "swap_in", "transfer"});
  out.layer = json.at("layer").text();
  out.index = index;
  if (kind == "dispatch") {
    dispatch(json, out);
  } else if (kind == "copy") {
    out.kind = Step::Kind::copy;
    copy(json, out);
    check_side(json, plan_, out);
  } else if (kind == "transfer") {
    out.kind = Step::Kind::transfer;
    transfer(json, out);
  } else {
    out.kind = kind == "swap_out" ? Step::Kind::swap_out : Step::Kind::swap_in;
    swap(json, out);
    check_side(json, plan_, out);
  }
  return out;
}

}  // namespace

void parse_steps(const Reader& json, const Names& programs, const Names& buffers, Plan& plan) {
  const StepParser parser(programs, buffers, plan);
  for (const Reader& item : json.items()) plan.steps.push_back(parser.step(item, plan.steps.size()));
}

}  // namespace pocketfarm
