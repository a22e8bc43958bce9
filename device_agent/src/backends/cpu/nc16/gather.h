// Copies what the pixels of a product's tile read into one panel: the rows of the im2col matrix, tile by tile.
#pragma once

#include <cstdint>

#include "kernels.h"

namespace pocketfarm::cpu {

// Source in blocks (c / 16, h, w, 16): an entry for each block and tap, block first; `count` * 16 floats each.
void gather_blocks(const Window& window, const float* src, int64_t blocks, int64_t pixel, int64_t count, float* panel);
// Plain source (c, h, w): an entry of `count` floats for each channel and tap, channel first, `stride` floats apart.
void gather_planes(const Window& window, const float* src, int64_t channels, int64_t pixel, int64_t count,
                   int64_t stride, float* panel);

}  // namespace pocketfarm::cpu
