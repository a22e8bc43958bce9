// Values in 8 bits: whole numbers from 0 to 255 by the range of what is there now, 0 among them.
#pragma once

#include "kernel.h"

namespace pocketfarm::cpu {

// Where a value is NaN or infinite, so is every result: the scale is NaN.
Int8Steps steps_of(const Int8Range& range);
// Those that the model gives; the scale is positive.
Int8Steps given_steps(float scale, int32_t zero);
// For a block of sixteen outputs: what its sums count too much, and what they are multiplied by.
void correct(const Int8Steps& steps, const int32_t* weight_sums, const float* weight_scales, int32_t* start, float* factor);

}  // namespace pocketfarm::cpu
