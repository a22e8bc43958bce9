#include "order.h"

namespace pocketfarm {
namespace {

Range range(const Plan& plan, size_t buffer, uint64_t offset, uint64_t bytes, bool written) {
  const Buffer& b = plan.buffers[buffer];
  return {b.pool, b.offset + offset, b.offset + offset + bytes, written};
}

}  // namespace

std::vector<Range> accesses(const Plan& plan, const Step& step) {
  if (step.kind == Step::Kind::copy)
    return {range(plan, step.source, step.source_offset, step.bytes, false),
            range(plan, step.target, step.target_offset, step.bytes, true)};
  if (step.kind != Step::Kind::dispatch) {
    const bool in = step.kind == Step::Kind::swap_in;
    const uint64_t place = plan.pools.size() + step.target;  // the buffer's host memory
    return {range(plan, step.source, 0, step.bytes, in), {place, 0, step.bytes, !in}};
  }
  std::vector<Range> out;
  const Program& program = plan.programs[step.program];
  for (size_t i = 0; i < step.arguments.size(); ++i)
    if (const Argument& given = step.arguments[i]; given.kind == Parameter::Kind::buffer)
      out.push_back(range(plan, given.buffer, given.begin, given.end - given.begin, program.parameters[i].writes));
  return out;
}

}  // namespace pocketfarm
