#pragma once

#include "device.h"

namespace pocketfarm::vulkan {

// Who may see what was written before a barrier.
enum class Seen { by_device, by_host };

// Everything before it is done before anything after it begins. Making writes visible to the host costs more than to
// the next step: an eighth of a small network's time, were each barrier to do it.
void barrier(const Device& device, VkCommandBuffer commands, Seen seen, Queue queue = Queue::compute);

}  // namespace pocketfarm::vulkan
