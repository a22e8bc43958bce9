// Inner loops of products in 8 bits, one set for each instruction set; all give the same bits.
#pragma once

#include <cstdint>

namespace pocketfarm::cpu {

// sums[block][pixel][16] = sum over d of value(d, pixel) * weight[block][d / 4][16][d % 4], exact where that fits in 32 bits.
// A run is `steps` times four values of d side by side; pixel p's begin at values[offsets[run] + p * pixel_stride].
struct Int8Product {
  const uint8_t* values;
  int64_t pixel_stride;
  const int64_t* offsets;
  int64_t runs, steps;
  const int8_t* weight;
  int64_t weight_stride;  // from one block of outputs to the next
  int pixels, blocks;
  int32_t* sums;
};

struct Int8Range {
  float least = 0, most = 0;
  bool finite = true;
};

// How values became whole numbers: x = scale * (q - zero). Where the model gives the scale (`given`), they are divided by
// it, as ONNX's QuantizeLinear does; else multiplied by its inverse.
struct Int8Steps {
  float scale, inverse;
  int32_t zero;
  bool given = false;
};

struct Int8Kernels {
  int pixels, blocks;  // of a product, at most
  void (*product)(const Int8Product& product);
  // Widens a range by `count` values.
  void (*range)(const float* from, int64_t count, Int8Range* range);
  void (*quantize)(const float* from, int64_t count, const Int8Steps& steps, uint8_t* to);
  // out[pixel][16] = (sums[pixel][16] - start[16]) * factor[16] + bias[16] + residual[pixel][16]; both may be null.
  void (*scale)(const int32_t* sums, int64_t pixels, const int32_t* start, const float* factor, const float* bias,
                const float* residual, float* out);
};

constexpr int kInt8MostPixels = 12, kInt8MostBlocks = 2;
constexpr int64_t kInt8MostDepth = 65536;  // 255 * 128 * depth stays below 2^31

extern const Int8Kernels kInt8Generic;
#if defined(__x86_64__)
extern const Int8Kernels kInt8Avx2, kInt8Avx512Vnni;
#endif

// The best of this processor, within the instruction set that was chosen.
const Int8Kernels& int8_kernels();

}  // namespace pocketfarm::cpu
