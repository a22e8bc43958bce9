#include "timestamps.h"

namespace pocketfarm::vulkan {

Status Timestamps::make() {
  if (device_.physical().timestamp_bits == 0)
    return Error{Code::unsupported, "`" + device_.physical().facts.device_name + "` has no timestamps on its compute queue"};
  VkQueryPoolCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = 2 * kPairs;
  VkQueryPool pool{};
  if (const VkResult result = device_.vk().vkCreateQueryPool(device_.handle(), &info, nullptr, &pool))
    return vk_error("vkCreateQueryPool", result);
  pool_ = {device_.handle(), pool, device_.vk().vkDestroyQueryPool};
  return kOk;
}

Result<std::vector<int64_t>> Timestamps::durations(uint32_t pairs) const {
  std::vector<uint64_t> ticks(2 * pairs);
  if (pairs == 0) return std::vector<int64_t>();
  if (const VkResult result = device_.vk().vkGetQueryPoolResults(device_.handle(), pool_.get(), 0, 2 * pairs,
                                                                 ticks.size() * 8, ticks.data(), 8,
                                                                 VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT))
    return vk_error("vkGetQueryPoolResults", result);
  const uint32_t bits = device_.physical().timestamp_bits;
  const uint64_t mask = bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  const double period_ns = device_.physical().properties.limits.timestampPeriod;
  std::vector<int64_t> out;
  for (uint32_t i = 0; i < pairs; ++i)
    out.push_back(static_cast<int64_t>(static_cast<double>((ticks[2 * i + 1] - ticks[2 * i]) & mask) * period_ns));
  return out;
}

}  // namespace pocketfarm::vulkan
