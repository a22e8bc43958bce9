// OpenCL devices of every platform and what they offer.
#pragma once

#include <vector>

#include "device/facts.h"
#include "library.h"

namespace pocketfarm::opencl {

struct Device {
  cl_platform_id platform;
  cl_device_id id;
  cl_device_type type;
  std::string platform_version;
  std::string driver_version;
  ApiFacts facts;
};

// Every device: GPUs first, then accelerators, then CPUs; `no_device` where there is none.
Result<std::vector<Device>> list_devices(const Library& library);

// Whether a device has an extension.
bool offers(const Library& library, cl_device_id device, const std::string& extension);

}  // namespace pocketfarm::opencl
