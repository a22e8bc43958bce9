#include "library.h"

#include <dlfcn.h>

#include "system/link_error.h"

namespace pocketfarm::vulkan {
namespace {

const char* const kCandidates[] = {"libvulkan.so.1", "libvulkan.so"};

struct Entry {
  PFN_vkGetInstanceProcAddr get = nullptr;
  std::string path;
  std::string tried;  // what the linker said of those that cannot be used
};

Entry find_loader() {
  Entry entry;
  for (const char* candidate : kCandidates) {
    if (void* handle = ::dlopen(candidate, RTLD_NOW | RTLD_LOCAL)) {
      entry.path = candidate;
      entry.get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(::dlsym(handle, "vkGetInstanceProcAddr"));
      if (entry.get != nullptr) return entry;
    }
    (entry.tried += entry.tried.empty() ? "" : "; ") += link_error(candidate);
  }
  return entry;
}

VkResult make_instance(PFN_vkGetInstanceProcAddr get, Library& library) {
  if (const auto version = reinterpret_cast<PFN_vkEnumerateInstanceVersion>(get(nullptr, "vkEnumerateInstanceVersion")))
    version(&library.instance_version);
  const auto create = reinterpret_cast<PFN_vkCreateInstance>(get(nullptr, "vkCreateInstance"));
  if (create == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "pocketfarm-agent";
  application.apiVersion = library.instance_version >= VK_API_VERSION_1_1 ? VK_API_VERSION_1_3 : VK_API_VERSION_1_0;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  return create(&info, nullptr, &library.instance);
}

const char* load_functions(PFN_vkGetInstanceProcAddr get, Library& library) {
#define POCKETFARM_LOAD(name) library.name = reinterpret_cast<PFN_##name>(get(library.instance, #name));
  POCKETFARM_VULKAN_FUNCTIONS(POCKETFARM_LOAD)
  POCKETFARM_VULKAN_11_FUNCTIONS(POCKETFARM_LOAD)
#undef POCKETFARM_LOAD
#define POCKETFARM_MISSING(name) \
  if (library.name == nullptr) return #name;
  POCKETFARM_VULKAN_FUNCTIONS(POCKETFARM_MISSING)
#undef POCKETFARM_MISSING
  return nullptr;
}

const char* name_of(VkResult result) {
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY: return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_INITIALIZATION_FAILED: return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_ERROR_DEVICE_LOST: return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_MEMORY_MAP_FAILED: return "VK_ERROR_MEMORY_MAP_FAILED";
    case VK_ERROR_FEATURE_NOT_PRESENT: return "VK_ERROR_FEATURE_NOT_PRESENT";
    case VK_ERROR_INCOMPATIBLE_DRIVER: return "VK_ERROR_INCOMPATIBLE_DRIVER";
    case VK_ERROR_TOO_MANY_OBJECTS: return "VK_ERROR_TOO_MANY_OBJECTS";
    default: return "error";
  }
}

}  // namespace

Result<const Library*> Library::load() {
  static Library library;
  if (!library.path.empty()) return &library;
  const Entry entry = find_loader();
  if (entry.get == nullptr) return Error{Code::no_device, "no Vulkan loader: " + entry.tried};
  if (const VkResult result = make_instance(entry.get, library))
    return Error{Code::no_device, entry.path + ": " + vk_error("vkCreateInstance", result).message};
  if (const char* missing = load_functions(entry.get, library))
    return Error{Code::no_device, entry.path + ": has no " + missing};
  library.path = entry.path;
  return &library;
}

Error vk_error(const std::string& call, VkResult result) {
  const bool memory = result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY;
  return {memory ? Code::out_of_memory : Code::device_error,
          call + " failed: " + name_of(result) + " (" + std::to_string(result) + ")"};
}

}  // namespace pocketfarm::vulkan
