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

// sums[pixel][16] = sum over the taps of a window of value * weight[tap][16]: each lane by itself. Up to kInt8Ahead bytes
// behind the last value may be read, whatever they are.
struct Int8Window {
  const uint8_t* values;
  int64_t row_stride, tap_stride, pixel_stride;
  int64_t kh, kw;
  const int8_t* weight;
  int pixels;
  int32_t* sums;
};

struct Int8Range {
  float least = 0, most = 0;
  bool finite = true;
};

// How values become whole numbers: x = scale * (q - zero). Where the model gives the scale (`given`), they are divided by
// it, as ONNX's QuantizeLinear does; else multiplied by its inverse. `rest` is 1 / scale - inverse; where one of these is
// not finite or loses bits, `exact` is false, and the division is the processor's.
struct Int8Steps {
  float scale, inverse;
  int32_t zero;
  bool given = false;
  float rest = 0;
  bool exact = false;
};

// Where finished values go: as they are, as whole numbers, as what the whole numbers stand for; null: not there.
struct Int8Store {
  Int8Steps steps;
  float* floats;
  uint8_t* codes;
  float* rounded;
};

// What a layer does with the sums of a block: (sum - start + offset * the window's sum) * factor + bias, rounded to a grid; times scale plus shift;
// rounded to a grid; plus the residual; activated. What is null is left out.
struct Int8Finish {
  const int32_t* start;
  const int32_t *offsets, *windows;  // 16, and one a pixel: what is read there, less as many zeros
  const float *factor, *bias;        // 16 each
  const Int8Steps* sums_grid;
  const float *scale, *shift;  // 16 each
  const Int8Steps* branch_grid;
  const float* residual;  // like the output
  const uint8_t* residual_codes;
  Int8Steps residual_steps;
  int32_t activation;  // none, relu, clip or leaky relu
  float lo, hi;
  Int8Store to;
};

// A row of a matrix in whole numbers: how they were made, and their sum less as many zeros.
struct Int8Row {
  Int8Steps steps;
  int32_t sum;
};

// The end of a tile of a dense layer: (sum - zero * weights' sum + offset * row's sum) * scale * weights' scale + bias.
struct Int8Tile {
  const int32_t* sums;  // [block][row][16]
  const Int8Row* made;
  int rows, blocks;
  const int32_t *weight_sums, *offsets;  // 16 of each block; offsets and bias may be null
  const float *weight_scales, *bias;
  float* to;
  int64_t stride;  // from one row to the next
};

struct Int8Kernels {
  int pixels, blocks;  // of a product, at most
  void (*product)(const Int8Product& product);
  void (*window)(const Int8Window& window);  // of kInt8MostPixels at most
  // Widens a range by `count` values.
  void (*range)(const float* from, int64_t count, Int8Range* range);
  void (*quantize)(const float* from, int64_t count, const Int8Steps& steps, uint8_t* to);
  // For a block of sixteen outputs: what its sums count too much, and what they are multiplied by.
  void (*correct)(const Int8Steps& steps, const int32_t* weight_sums, const float* weight_scales, int32_t* start, float* factor);
  void (*finish_tile)(const Int8Tile& tile);
  void (*finish)(const int32_t* sums, int64_t pixels, const Int8Finish& how);
  void (*store)(const float* from, int64_t pixels, const Int8Store& to);
};

constexpr int kInt8MostPixels = 12, kInt8MostBlocks = 2;
constexpr int64_t kInt8MostDepth = 65536;  // 255 * 128 * depth stays below 2^31
constexpr int64_t kInt8Ahead = 64;

extern const Int8Kernels kInt8Generic;
#if defined(__x86_64__)
extern const Int8Kernels kInt8Avx2, kInt8Avx512Vnni;
#elif defined(__aarch64__)
extern const Int8Kernels kInt8DotProd;
#endif

// The best of this processor, within the instruction set that was chosen.
const Int8Kernels& int8_kernels();

// Its instruction for products of 8 bits, "vnni" or "sdot"; empty: others do them.
const char* int8_instruction();

}  // namespace pocketfarm::cpu
