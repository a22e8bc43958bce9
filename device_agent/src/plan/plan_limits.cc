// A plan against the device that is to run it.
#include <algorithm>

#include "plan.h"

namespace pocketfarm {
namespace {

Status at_most(const std::string& what, uint64_t wanted, uint64_t limit, const std::string& limit_name,
               const std::string& device) {
  if (limit == 0 || wanted <= limit) return kOk;
  return Error{Code::limit, what + " needs " + std::to_string(wanted) + ", which exceeds " + limit_name + " of `" +
                                device + "`, " + std::to_string(limit) + ", by " + std::to_string(wanted - limit) +
                                "; compile the plan for this device"};
}

Status check_program(const Program& program, const ApiFacts& facts) {
  const std::string name = "program `" + program.id + "`";
  if (auto error = at_most(name, program.work_group_size(), facts.max_work_group, "max_work_group", facts.device_name))
    return error;
  for (size_t i = 0; i < std::min<size_t>(3, facts.max_work_item_sizes.size()); ++i)
    if (auto error = at_most(name + " dimension " + std::to_string(i), program.work_group[i],
                             facts.max_work_item_sizes[i], "max_work_item_sizes", facts.device_name))
      return error;
  return at_most(name + " local memory", program.local_bytes, facts.local_bytes, "local_bytes", facts.device_name);
}

Status check_requires(const Requires& needs, const ApiFacts& facts) {
  const std::string& device = facts.device_name;
  if (auto error = at_most("requires.total_bytes", needs.total_bytes, facts.global_bytes, "global_bytes", device))
    return error;
  if (auto error = at_most("requires.max_buffer_bytes", needs.max_buffer_bytes, facts.max_buffer_bytes,
                           "max_buffer_bytes", device))
    return error;
  if (auto error = at_most("requires.work_group", needs.work_group, facts.max_work_group, "max_work_group", device))
    return error;
  return at_most("requires.local_bytes", needs.local_bytes, facts.local_bytes, "local_bytes", device);
}

Status check_memory(const Plan& plan, const ApiFacts& facts) {
  uint64_t total = 0;
  for (const Pool& pool : plan.pools) {
    if (auto error = at_most("pool `" + pool.id + "`", pool.bytes, facts.max_buffer_bytes, "max_buffer_bytes",
                             facts.device_name))
      return error;
    total = pool.bytes > UINT64_MAX - total ? UINT64_MAX : total + pool.bytes;
  }
  if (auto error = at_most("the sum of all pools", total, facts.global_bytes, "global_bytes", facts.device_name))
    return error;
  for (const Buffer& buffer : plan.buffers)
    if (buffer.offset % facts.offset_alignment != 0)
      return Error{Code::limit, "buffer `" + buffer.id + "`: offset " + std::to_string(buffer.offset) +
                                    " is not a multiple of offset_alignment of `" + facts.device_name + "`, " +
                                    std::to_string(facts.offset_alignment) + "; compile the plan for this device"};
  return kOk;
}

std::string largest_buffer(const Plan& plan, size_t pool) {
  const Buffer* largest = nullptr;
  for (const Buffer& buffer : plan.buffers)
    if (buffer.pool == pool && (largest == nullptr || buffer.bytes > largest->bytes)) largest = &buffer;
  return largest == nullptr ? "" : " (largest buffer: `" + largest->id + "`, " + std::to_string(largest->bytes) + ")";
}

Error beyond(const std::string& what, uint64_t wanted, uint64_t limit, const char* option) {
  return Error{Code::limit, what + " " + std::to_string(wanted) + " bytes, which exceeds the run's limit (" + option + ") of " +
                                std::to_string(limit) + " by " + std::to_string(wanted - limit) +
                                "; compile the plan with this limit, or allow more"};
}

}  // namespace

Status check_limits(const Plan& plan, const ApiFacts& facts) {
  for (Precision precision : {plan.precision, plan.needs.fp16 ? Precision::fp16 : plan.precision})
    if (!facts.has(precision))
      return Error{Code::unsupported, std::string("the plan needs precision ") + word(precision) + ", which `" +
                                          facts.device_name + "` (" + word(facts.api) + ") does not offer"};
  if (auto error = check_requires(plan.needs, facts)) return error;
  for (const Program& program : plan.programs)
    if (auto error = check_program(program, facts)) return error;
  return check_memory(plan, facts);
}

Status check_memory_limit(const Plan& plan, const MemoryLimit& limit) {
  uint64_t total = 0;
  for (size_t i = 0; i < plan.pools.size(); ++i) {
    if (plan.pools[i].beside) continue;
    const std::string name = "pool `" + plan.pools[i].id + "`" + largest_buffer(plan, i);
    total += plan.pools[i].bytes;
    if (limit.object > 0 && plan.pools[i].bytes > limit.object)
      return beyond(name + " needs", plan.pools[i].bytes, limit.object, "--largest-object");
    if (limit.total > 0 && total > limit.total)
      return beyond(name + " brings the device's memory to", total, limit.total, "--memory-total");
  }
  return kOk;
}

}  // namespace pocketfarm
