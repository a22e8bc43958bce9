#include "library.h"

#include <dlfcn.h>

#include <cstdint>

#include "system/link_error.h"

namespace pocketfarm::opencl {
namespace {

// Where a vendor's libraries lie, by the width of the process that loads them.
#if UINTPTR_MAX > UINT32_MAX
#define POCKETFARM_LIB "lib64"
#else
#define POCKETFARM_LIB "lib"
#endif

const char* const kCandidates[] = {
#ifndef __ANDROID__
    "libOpenCL.so.1",
#endif
    "libOpenCL.so",
    "/vendor/" POCKETFARM_LIB "/libOpenCL.so",
    "/system/vendor/" POCKETFARM_LIB "/libOpenCL.so",
    "libOpenCL-pixel.so",
    "libOpenCL-car.so",
    "/vendor/" POCKETFARM_LIB "/egl/libGLES_mali.so",
    "libmali.so",
    "/vendor/" POCKETFARM_LIB "/libPVROCL.so",
};

// Google's own runtimes hide the API behind two functions of their own.
void* pixel_symbol(void* handle, const char* name) {
  using Enable = void (*)();
  using Load = void* (*)(const char*);
  const auto enable = reinterpret_cast<Enable>(::dlsym(handle, "enableOpenCL"));
  const auto load = reinterpret_cast<Load>(::dlsym(handle, "loadOpenCLPointer"));
  if (enable == nullptr || load == nullptr) return nullptr;
  enable();
  return load(name);
}

void* symbol(void* handle, const char* name) {
  void* found = ::dlsym(handle, name);
  return found != nullptr ? found : pixel_symbol(handle, name);
}

// The first function that it has not got; null where it has all.
const char* lacking(void* handle, Library& library) {
#define POCKETFARM_LOAD(name)                                              \
  library.name = reinterpret_cast<decltype(&::name)>(symbol(handle, #name)); \
  if (library.name == nullptr) return #name;
  POCKETFARM_OPENCL_FUNCTIONS(POCKETFARM_LOAD)
#undef POCKETFARM_LOAD
#define POCKETFARM_LOAD(name) library.name = reinterpret_cast<decltype(&::name)>(symbol(handle, #name));
  POCKETFARM_OPENCL_12_FUNCTIONS(POCKETFARM_LOAD)
#undef POCKETFARM_LOAD
  return nullptr;
}

// Why a library cannot be used, in the linker's or the driver's words; empty where it can.
std::string refusal(const char* candidate, Library& library) {
  void* handle = ::dlopen(candidate, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return link_error(candidate);
  if (const char* name = lacking(handle, library)) return std::string(candidate) + " was opened, but has no " + name;
  cl_uint count = 0;
  const cl_int code = library.clGetPlatformIDs(0, nullptr, &count);
  if (code != CL_SUCCESS) return std::string(candidate) + " was opened, but " + cl_error("clGetPlatformIDs", code).message;
  return count > 0 ? "" : std::string(candidate) + " was opened, but has no platform";
}

const char* name_of(cl_int code) {
  switch (code) {
    case -1001: return "CL_PLATFORM_NOT_FOUND_KHR";
    case CL_DEVICE_NOT_FOUND: return "CL_DEVICE_NOT_FOUND";
    case CL_DEVICE_NOT_AVAILABLE: return "CL_DEVICE_NOT_AVAILABLE";
    case CL_MEM_OBJECT_ALLOCATION_FAILURE: return "CL_MEM_OBJECT_ALLOCATION_FAILURE";
    case CL_OUT_OF_RESOURCES: return "CL_OUT_OF_RESOURCES";
    case CL_OUT_OF_HOST_MEMORY: return "CL_OUT_OF_HOST_MEMORY";
    case CL_BUILD_PROGRAM_FAILURE: return "CL_BUILD_PROGRAM_FAILURE";
    case CL_MISALIGNED_SUB_BUFFER_OFFSET: return "CL_MISALIGNED_SUB_BUFFER_OFFSET";
    case CL_IMAGE_FORMAT_NOT_SUPPORTED: return "CL_IMAGE_FORMAT_NOT_SUPPORTED";
    case CL_INVALID_IMAGE_SIZE: return "CL_INVALID_IMAGE_SIZE";
    case CL_INVALID_VALUE: return "CL_INVALID_VALUE";
    case CL_INVALID_BUFFER_SIZE: return "CL_INVALID_BUFFER_SIZE";
    case CL_INVALID_KERNEL_NAME: return "CL_INVALID_KERNEL_NAME";
    case CL_INVALID_ARG_SIZE: return "CL_INVALID_ARG_SIZE";
    case CL_INVALID_WORK_GROUP_SIZE: return "CL_INVALID_WORK_GROUP_SIZE";
    case CL_INVALID_WORK_ITEM_SIZE: return "CL_INVALID_WORK_ITEM_SIZE";
    default: return "error";
  }
}

}  // namespace

Result<const Library*> Library::load() {
  static Library library;
  if (!library.path.empty()) return &library;
  std::string tried;
  for (const char* candidate : kCandidates) {
    const std::string why = refusal(candidate, library);
    if (why.empty()) {
      library.path = candidate;
      return &library;
    }
    (tried += tried.empty() ? "" : "; ") += why;
  }
  return Error{Code::no_device, "no OpenCL library with a platform: " + tried};
}

Error cl_error(const std::string& call, cl_int code) {
  const bool memory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY;
  return {memory ? Code::out_of_memory : Code::device_error,
          call + " failed: " + name_of(code) + " (" + std::to_string(code) + ")"};
}

}  // namespace pocketfarm::opencl
