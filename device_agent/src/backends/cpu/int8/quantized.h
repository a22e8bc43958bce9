// Values in 8 bits: whole numbers from 0 to 255 by the range of what is there now, 0 among them.
#pragma once

#include "kernel.h"
#include "backends/cpu/threads/thread_pool.h"

namespace pocketfarm::cpu {

// How the values of a call become whole numbers.
enum class Int8By : int64_t { own_range = 0, given = 1, whole_range = 2 };  // of each row or image; by the call; of all

// Where a value is NaN or infinite, so is every result: the scale is NaN.
Int8Steps steps_of(const Int8Range& range);
// Those that the model gives; the scale is positive.
Int8Steps given_steps(float scale, int32_t zero);
// As ONNX's DynamicQuantizeLinear has them: values are divided by the scale; of nothing but zeros it is 1.
Int8Steps dynamic_steps(const Int8Range& range);
// The range of `count` values, and of more; on all threads.
void widen(const Int8Kernels& kernels, ThreadPool& pool, const float* from, int64_t count, Int8Range* range);

}  // namespace pocketfarm::cpu
