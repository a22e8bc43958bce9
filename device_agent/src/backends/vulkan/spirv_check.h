// What a SPIR-V module asks of the device, read from its header and OpCapability instructions.
#pragma once

#include "system/files.h"
#include "physical_device.h"

namespace pocketfarm::vulkan {

// `plan_invalid` for what is no module, `unsupported` for a version or capability that the device lacks.
Status check_spirv(const MappedFile& module, const std::string& file, const PhysicalDevice& device, bool fp16);

}  // namespace pocketfarm::vulkan
