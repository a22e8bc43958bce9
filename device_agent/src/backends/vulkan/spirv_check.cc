#include "pipelines.h"

#include <cstring>

namespace pocketfarm::vulkan {
namespace {

constexpr uint32_t kMagic = 0x07230203;
constexpr size_t kHeaderWords = 5;
constexpr uint32_t kOpCapability = 17;
// Numbers of the SPIR-V specification.
constexpr uint32_t kMatrix = 0, kShader = 1, kFloat16 = 9, kInt64 = 11, kSampledBuffer = 46, kImageBuffer = 47, kImageQuery = 50,
                   kGroupNonUniformFirst = 61, kGroupNonUniformLast = 68, kStorageBuffer16BitAccess = 4433, kMemoryModel = 5345,
                   kPackedDotProduct = 6018, kDotProduct = 6019,
                   kCooperativeMatrix = 6022;
// Of the subgroup capabilities, in their order.
constexpr VkSubgroupFeatureFlags kSubgroupOperations[] = {
    VK_SUBGROUP_FEATURE_BASIC_BIT,   VK_SUBGROUP_FEATURE_VOTE_BIT,             VK_SUBGROUP_FEATURE_ARITHMETIC_BIT,
    VK_SUBGROUP_FEATURE_BALLOT_BIT,  VK_SUBGROUP_FEATURE_SHUFFLE_BIT,          VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT,
    VK_SUBGROUP_FEATURE_CLUSTERED_BIT, VK_SUBGROUP_FEATURE_QUAD_BIT,
};

uint32_t word(const MappedFile& module, size_t index) {
  uint32_t value;
  std::memcpy(&value, module.data() + 4 * index, 4);
  return value;
}

// Newest SPIR-V version (major << 16 | minor << 8) of a Vulkan version.
uint32_t newest_spirv(uint32_t vulkan) {
  if (vulkan >= VK_API_VERSION_1_3) return 0x10600;
  if (vulkan >= VK_API_VERSION_1_2) return 0x10500;
  return vulkan >= VK_API_VERSION_1_1 ? 0x10300 : 0x10000;
}

bool offers(uint32_t capability, const PhysicalDevice& device, bool fp16) {
  if (capability == kMatrix || capability == kShader || capability == kImageQuery) return true;
  if (capability == kSampledBuffer || capability == kImageBuffer) return true;
  if (capability == kStorageBuffer16BitAccess) return fp16 && device.storage_16bit;
  if (capability == kMemoryModel || capability == kCooperativeMatrix) return fp16 && !device.facts.matrix_units.empty();
  if (capability == kPackedDotProduct || capability == kDotProduct) return !device.facts.dot_product.empty();
  if (capability == kInt64) return device.facts.int64;
  if (capability == kFloat16) return fp16 && device.shader_float16;
  return capability >= kGroupNonUniformFirst && capability <= kGroupNonUniformLast &&
         (device.subgroup_operations & kSubgroupOperations[capability - kGroupNonUniformFirst]) != 0;
}

}  // namespace

Status check_spirv(const MappedFile& module, const std::string& file, const PhysicalDevice& device, bool fp16) {
  const size_t words = module.bytes() / 4;
  if (module.bytes() % 4 != 0 || words < kHeaderWords || word(module, 0) != kMagic)
    return Error{Code::plan_invalid, file + ": not a SPIR-V module"};
  if (word(module, 1) > newest_spirv(device.version))
    return Error{Code::unsupported, file + ": SPIR-V " + std::to_string(word(module, 1) >> 16) + "." +
                                        std::to_string(word(module, 1) >> 8 & 0xff) + " is too new for Vulkan " +
                                        device.facts.version + " of `" + device.facts.device_name + "`"};
  for (size_t at = kHeaderWords; at < words;) {
    const uint32_t length = word(module, at) >> 16, operation = word(module, at) & 0xffff;
    if (length == 0 || at + length > words) return Error{Code::plan_invalid, file + ": a truncated SPIR-V module"};
    if (operation == kOpCapability && length >= 2 && !offers(word(module, at + 1), device, fp16))
      return Error{Code::unsupported, file + ": needs SPIR-V capability " + std::to_string(word(module, at + 1)) +
                                          ", which is not enabled on `" + device.facts.device_name + "`"};
    at += length;
  }
  return kOk;
}

}  // namespace pocketfarm::vulkan
