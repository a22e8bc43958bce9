#include "plan_parsing.h"

namespace pocketfarm {
namespace {

constexpr size_t kMaxScalars = 32;  // of a kernel; an operation of the CPU backend is as long as its contract says

const char* word(Parameter::Kind kind) {
  return kind == Parameter::Kind::buffer ? "buffer" : kind == Parameter::Kind::i32 ? "i32" : "f32";
}

}  // namespace

void check_range(const Reader& at, const std::string& whole, uint64_t offset, uint64_t bytes, uint64_t size) {
  if (bytes <= size && offset <= size - bytes) return;
  at.fail("bytes " + std::to_string(offset) + " to " + std::to_string(offset + bytes) + " exceed " + whole + " of " +
          std::to_string(size) + " bytes by " + std::to_string(offset + bytes - size));
}

void check_arguments(const Reader& at, const Plan& plan, const Program& program,
                     const std::vector<Argument>& arguments) {
  if (arguments.size() != program.parameters.size())
    at.fail(std::to_string(arguments.size()) + " arguments for the " + std::to_string(program.parameters.size()) +
            " parameters of program `" + program.id + "`");
  size_t scalars = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Parameter& parameter = program.parameters[i];
    if (arguments[i].kind != parameter.kind)
      at.fail("argument " + std::to_string(i) + " is " + word(arguments[i].kind) + ", but parameter `" +
              parameter.name + "` of program `" + program.id + "` is " + word(parameter.kind));
    if (parameter.kind == Parameter::Kind::buffer) {
      const Buffer& buffer = plan.buffers[arguments[i].buffer];
      if (plan.beside(arguments[i].buffer) != program.beside)
        at.fail("argument " + std::to_string(i) + ", `" + buffer.id + "`, is not of the API of program `" + program.id +
                "`: transfer it first");
    }
    scalars += parameter.kind != Parameter::Kind::buffer;
  }
  if (plan.api != Api::cpu && !program.beside && scalars > kMaxScalars)
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

void check_side(const Reader& at, const Plan& plan, const Step& step) {
  if (plan.beside(step.source) != plan.beside(step.target))
    at.fail("buffers `" + plan.buffers[step.source].id + "` and `" + plan.buffers[step.target].id +
            "` are of two APIs: a `transfer` takes one to the other");
}

void check_swaps(const Reader& at, const Plan& plan) {
  std::vector<bool> out(plan.buffers.size(), false);
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    out[i] = plan.buffers[i].offloaded;
    if (out[i] && !plan.buffers[i].blob_offset)
      at.fail("buffer `" + plan.buffers[i].id + "` is offloaded and has no content in blob.bin");
  }
  for (const Step& step : plan.steps) {
    if (step.kind == Step::Kind::swap_out && plan.buffers[step.target].offloaded)
      at.fail("layer `" + step.layer + "` would overwrite the offloaded weight `" + plan.buffers[step.target].id + "`");
    if (step.kind == Step::Kind::swap_out) out[step.target] = true;
    if (step.kind == Step::Kind::swap_in && !out[step.target])
      at.fail("buffer `" + plan.buffers[step.source].id + "` is swapped in (layer `" + step.layer +
              "`) before it was swapped out");
  }
}

std::vector<uint64_t> Plan::host_bytes() const {
  std::vector<uint64_t> out(buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].offloaded) out[i] = buffers[i].bytes;
  for (const Step& step : steps)
    if (step.kind == Step::Kind::swap_out) out[step.target] = step.bytes;
  return out;
}

}  // namespace pocketfarm
