// The image that a layer in 8 bits reads, row by row in whole numbers, with its edges.
#pragma once

#include "conv_call.h"

namespace pocketfarm::cpu {

// Gives a call its steps, where these follow from the range of all images.
void find_steps(Int8Conv* conv, const Int8Kernels& kernels, ThreadPool& pool);

class Int8Image {
 public:
  // How it becomes whole numbers is given, or found by its range.
  Int8Image(const Int8Conv& conv, const Int8Kernels& kernels, ThreadPool& pool, int64_t image);
  const Int8Steps& steps() const { return steps_; }
  // A row of a block, `columns` of the call wide, of `lanes` values each; `row` counts from the upper edge on.
  void write_row(int64_t block, int64_t row, uint8_t* to) const;
  // The blocks of an image that is whole numbers already.
  const uint8_t* codes() const { return codes_; }

 private:
  void turn_row(const float* from, int64_t count, uint8_t* to) const;

  const Int8Conv& v_;
  const Int8Kernels& kernels_;
  const float* src_;
  const uint8_t* codes_;
  Int8Steps steps_;
};

}  // namespace pocketfarm::cpu
