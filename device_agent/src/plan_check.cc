#include "plan_check.h"

#include <algorithm>

namespace pocketfarm {
namespace {

constexpr uint64_t kMaxExecuted = 1'000'000;
constexpr size_t kMaxScalars = 32;

const char* word(Parameter::Kind kind) {
  return kind == Parameter::Kind::buffer ? "buffer" : kind == Parameter::Kind::i32 ? "i32" : "f32";
}

void swaps(const Reader& at, const Plan& plan, const std::vector<Step>& steps, std::vector<bool>& out) {
  for (const Step& step : steps) {
    if (step.kind == Step::Kind::swap_out) out[step.target] = true;
    if (step.kind == Step::Kind::swap_in && !out[step.target])
      at.fail("buffer `" + plan.buffers[step.source].id + "` is swapped in (layer `" + step.layer +
              "`) before it was swapped out");
    swaps(at, plan, step.steps, out);
  }
}

}  // namespace

void check_range(const Reader& at, const std::string& whole, uint64_t offset, uint64_t bytes, uint64_t size) {
  if (bytes <= size && offset <= size - bytes) return;
  at.fail("bytes " + std::to_string(offset) + " to " + std::to_string(offset + bytes) + " exceed " + whole + " of " +
          std::to_string(size) + " bytes by " + std::to_string(offset + bytes - size));
}

void check_arguments(const Reader& at, const Program& program, const std::vector<Argument>& arguments) {
  if (arguments.size() != program.parameters.size())
    at.fail(std::to_string(arguments.size()) + " arguments for the " + std::to_string(program.parameters.size()) +
            " parameters of program `" + program.id + "`");
  size_t scalars = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Parameter& parameter = program.parameters[i];
    if (arguments[i].kind != parameter.kind)
      at.fail("argument " + std::to_string(i) + " is " + word(arguments[i].kind) + ", but parameter `" +
              parameter.name + "` of program `" + program.id + "` is " + word(parameter.kind));
    scalars += parameter.kind != Parameter::Kind::buffer;
  }
  if (scalars > kMaxScalars)
    at.fail(std::to_string(scalars) + " scalars; at most " + std::to_string(kMaxScalars) + " are allowed", Code::limit);
}

void check_copy(const Reader& at, const Plan& plan, const Step& copy) {
  const Buffer &source = plan.buffers[copy.source], &target = plan.buffers[copy.target];
  check_range(at, "source buffer `" + source.id + "`", copy.source_offset, copy.bytes, source.bytes);
  check_range(at, "target buffer `" + target.id + "`", copy.target_offset, copy.bytes, target.bytes);
  const uint64_t from = source.offset + copy.source_offset, to = target.offset + copy.target_offset;
  if (source.pool == target.pool && from < to + copy.bytes && to < from + copy.bytes)
    at.fail("source and target overlap in pool `" + plan.pools[source.pool].id + "`");
}

uint64_t check_executed(const Reader& at, const std::vector<Step>& steps) {
  uint64_t total = 0;
  for (const Step& step : steps) {
    uint64_t each = 1;
    if (step.kind == Step::Kind::repeat)
      if (__builtin_mul_overflow(check_executed(at, step.steps), step.count, &each)) each = kMaxExecuted + 1;
    total = std::min(total + std::min(each, kMaxExecuted + 1), kMaxExecuted + 1);
  }
  if (total > kMaxExecuted)
    at.fail("one inference executes more than " + std::to_string(kMaxExecuted) + " steps", Code::limit);
  return total;
}

void check_swaps(const Reader& at, const Plan& plan) {
  std::vector<bool> out(plan.buffers.size(), false);
  swaps(at, plan, plan.steps, out);
}

}  // namespace pocketfarm
