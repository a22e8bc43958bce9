#include "physical_device.h"

#include <algorithm>
#include <cstring>

namespace pocketfarm::vulkan {
namespace {

std::string version_text(uint32_t version) {
  return std::to_string(VK_API_VERSION_MAJOR(version)) + "." + std::to_string(VK_API_VERSION_MINOR(version)) + "." +
         std::to_string(VK_API_VERSION_PATCH(version));
}

const char* vendor_name(uint32_t id) {
  switch (id) {
    case 0x5143: return "Qualcomm";
    case 0x13b5: return "ARM";
    case 0x1010: return "Imagination Technologies";
    case 0x10de: return "NVIDIA";
    case 0x1002: return "AMD";
    case 0x8086: return "Intel";
    case 0x144d: return "Samsung";
    case VK_VENDOR_ID_MESA: return "Mesa";
    default: return "";
  }
}

// What only Vulkan 1.1 and later can be asked.
struct Extended {
  VkPhysicalDeviceSubgroupProperties subgroup{};
  VkPhysicalDeviceMaintenance3Properties allocation{};
  VkPhysicalDeviceDriverProperties driver{};
};

Extended query_properties(const Library& library, const PhysicalDevice& device) {
  Extended out;
  out.subgroup.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES;
  out.allocation.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
  out.driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
  out.subgroup.pNext = &out.allocation;
  if (device.version >= VK_API_VERSION_1_2) out.allocation.pNext = &out.driver;
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &out.subgroup;
  library.vkGetPhysicalDeviceProperties2(device.handle, &properties);
  return out;
}

bool offers(const Library& library, VkPhysicalDevice device, const char* extension) {
  uint32_t count = 0;
  library.vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> all(count);
  library.vkEnumerateDeviceExtensionProperties(device, nullptr, &count, all.data());
  return std::any_of(all.begin(), all.end(), [&](const auto& one) { return !std::strcmp(one.extensionName, extension); });
}

// Core Vulkan does not tell; vendors do, each in an extension of its own. Zero: not known.
uint64_t compute_units(const Library& library, VkPhysicalDevice device) {
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  const auto query = [&](auto& part) {
    properties.pNext = &part;
    library.vkGetPhysicalDeviceProperties2(device, &properties);
  };
  if (offers(library, device, VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME)) {
    VkPhysicalDeviceShaderSMBuiltinsPropertiesNV part{};
    part.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV;
    query(part);
    return part.shaderSMCount;
  }
  if (offers(library, device, VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME)) {
    VkPhysicalDeviceShaderCorePropertiesAMD part{};
    part.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD;
    query(part);
    return uint64_t{part.shaderEngineCount} * part.shaderArraysPerEngineCount * part.computeUnitsPerShaderArray;
  }
#ifdef VK_ARM_SHADER_CORE_BUILTINS_EXTENSION_NAME
  if (offers(library, device, VK_ARM_SHADER_CORE_BUILTINS_EXTENSION_NAME)) {
    VkPhysicalDeviceShaderCoreBuiltinsPropertiesARM part{};
    part.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_BUILTINS_PROPERTIES_ARM;
    query(part);
    return part.shaderCoreCount;
  }
#endif
  return 0;
}

void query_features(const Library& library, PhysicalDevice& device) {
  VkPhysicalDeviceShaderIntegerDotProductFeatures dots{};
  dots.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES;
  device.dot_product_is_core = device.version >= VK_API_VERSION_1_3;
  VkPhysicalDeviceShaderFloat16Int8Features float16{};
  float16.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES;
  VkPhysicalDevice16BitStorageFeatures storage{};
  storage.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES;
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline{};
  timeline.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES;
  float16.pNext = &timeline;
  if (device.version >= VK_API_VERSION_1_2) storage.pNext = &float16;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &storage;
  if (device.dot_product_is_core || offers(library, device.handle, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME))
    dots.pNext = &storage, features.pNext = &dots;
  library.vkGetPhysicalDeviceFeatures2(device.handle, &features);
  device.storage_16bit = storage.storageBuffer16BitAccess == VK_TRUE;
  device.shader_float16 = float16.shaderFloat16 == VK_TRUE;
  device.timeline_semaphores = timeline.timelineSemaphore == VK_TRUE;
  device.facts.int64 = features.features.shaderInt64 == VK_TRUE;
  if (dots.shaderIntegerDotProduct == VK_TRUE) device.facts.dot_product = "khr";
}

uint64_t device_local_bytes(const VkPhysicalDeviceMemoryProperties& memory) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < memory.memoryHeapCount; ++i)
    if (memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) most = std::max(most, memory.memoryHeaps[i].size);
  return most;
}

void fill_basic_facts(const Library& library, PhysicalDevice& device) {
  const VkPhysicalDeviceLimits& limits = device.properties.limits;
  const VkPhysicalDeviceType type = device.properties.deviceType;
  ApiFacts& facts = device.facts;
  facts.api = Api::vulkan;
  facts.version = version_text(device.properties.apiVersion);
  facts.device_name = device.properties.deviceName;
  facts.vendor = vendor_name(device.properties.vendorID);
  facts.driver = version_text(device.properties.driverVersion);
  facts.library = library.path;
  facts.precisions = {Precision::fp32, Precision::relaxed, Precision::imprecise, Precision::int8};
  facts.global_bytes = device_local_bytes(device.memory);
  facts.max_buffer_bytes = limits.maxStorageBufferRange;
  facts.local_bytes = limits.maxComputeSharedMemorySize;
  facts.max_work_group = limits.maxComputeWorkGroupInvocations;
  facts.max_work_item_sizes.assign(limits.maxComputeWorkGroupSize, limits.maxComputeWorkGroupSize + 3);
  facts.compute_units = 0;
  facts.offset_alignment =
      std::max<uint64_t>({4, limits.minStorageBufferOffsetAlignment, limits.minTexelBufferOffsetAlignment});
  facts.max_image_width = facts.max_image_height = limits.maxImageDimension2D;
  facts.unified_memory = type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU || type == VK_PHYSICAL_DEVICE_TYPE_CPU;
}

void fill_extended_facts(const Library& library, PhysicalDevice& device) {
  if (device.version < VK_API_VERSION_1_1 || library.vkGetPhysicalDeviceProperties2 == nullptr) return;
  const Extended extended = query_properties(library, device);
  query_features(library, device);
  ApiFacts& facts = device.facts;
  facts.subgroup_size = extended.subgroup.subgroupSize;
  facts.compute_units = compute_units(library, device.handle);
  if (extended.subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT)
    device.subgroup_operations = extended.subgroup.supportedOperations;
  if (const uint64_t most = extended.allocation.maxMemoryAllocationSize; most > 0)
    facts.max_buffer_bytes = std::min(facts.max_buffer_bytes, most);
  if (extended.driver.driverName[0] != '\0')
    facts.driver = std::string(extended.driver.driverName) + " " + extended.driver.driverInfo;
  if (!device.storage_16bit) return;
  facts.precisions.push_back(Precision::fp16);
  if (!device.shader_float16) return;
  facts.precisions.push_back(Precision::fp16_arithmetic);
  if (device.version >= VK_API_VERSION_1_2 && offers(library, device.handle, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME))
    facts.matrix_units = matrix_units(library, device.handle);
}

// Queues without graphics first: their barriers cost less on a desktop GPU.
bool find_compute_queue(const Library& library, PhysicalDevice& device) {
  uint32_t count = 0;
  library.vkGetPhysicalDeviceQueueFamilyProperties(device.handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  library.vkGetPhysicalDeviceQueueFamilyProperties(device.handle, &count, families.data());
  for (uint32_t i = 0; i < count && device.transfer_family < 0; ++i)  // those for video can transfer, too, but slowly
    if ((families[i].queueFlags & ~VkQueueFlags{VK_QUEUE_SPARSE_BINDING_BIT}) == VK_QUEUE_TRANSFER_BIT) {
      device.transfer_family = static_cast<int>(i);
      device.transfer_queues = families[i].queueCount;
    }
  const VkQueueFlags kWanted[] = {VK_QUEUE_COMPUTE_BIT, VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT};
  for (const VkQueueFlags wanted : kWanted)
    for (uint32_t i = 0; i < count; ++i) {
      if ((families[i].queueFlags & (VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT)) != wanted) continue;
      device.queue_family = i;
      device.timestamp_bits = families[i].timestampValidBits;
      return true;
    }
  return false;
}

int rank(const PhysicalDevice& device) {
  switch (device.properties.deviceType) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return 1;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return 2;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return 4;
    default: return 3;
  }
}

}  // namespace

Result<std::vector<PhysicalDevice>> list_devices(const Library& library) {
  uint32_t count = 0;
  if (const VkResult result = library.vkEnumeratePhysicalDevices(library.instance, &count, nullptr))
    return Error{Code::no_device, vk_error("vkEnumeratePhysicalDevices", result).message};
  std::vector<VkPhysicalDevice> handles(count);
  library.vkEnumeratePhysicalDevices(library.instance, &count, handles.data());
  std::vector<PhysicalDevice> out;
  for (VkPhysicalDevice handle : handles) {
    PhysicalDevice device{};
    device.handle = handle;
    library.vkGetPhysicalDeviceProperties(handle, &device.properties);
    library.vkGetPhysicalDeviceMemoryProperties(handle, &device.memory);
    device.version = library.instance_version < VK_API_VERSION_1_1 ? VK_API_VERSION_1_0 : device.properties.apiVersion;
    if (!find_compute_queue(library, device)) continue;
    fill_basic_facts(library, device);
    fill_extended_facts(library, device);
    out.push_back(std::move(device));
  }
  if (out.empty()) return Error{Code::no_device, library.path + ": no Vulkan device with a compute queue"};
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return out;
}

}  // namespace pocketfarm::vulkan
