// Inner loops on blocks of sixteen channels, one set for each instruction set; the best is chosen at run time.
#pragma once

#include <cstdint>

#include "backends/cpu/packed/packed.h"

namespace pocketfarm::cpu {

// What a convolution does with its sums: bias, residual, activation. The sigmoids and hard swish are left to the caller.
struct Epilogue {
  const float* bias = nullptr;      // of the first output channel; null: none
  const float* residual = nullptr;  // like the output; null: none
  int64_t residual_stride = 0;      // from one block of channels to the next
  int32_t activation = 0;
  float lo = 0, hi = 0;
};

// out[block][pixel][16] = sum over d of value(d, pixel) * weight[block][d][16].
// Values in blocks: `entries` of 16 values of d, then `tail_entries` of `tail_lanes`; value l of entry e at
// values[e * entry_stride + pixel * 16 + l]. Values by depth (`step` is not 16): an entry is one d, at
// values[offsets[e] + pixel * step]; `step` is 1, 2 or 4. Of weights in blocks each `run` entries may be some of more: then
// `before` entries of weights lie in front of them and `behind` after them, of which there are no values.
struct Product {
  const float* values;
  int64_t entry_stride;
  const int64_t* offsets;
  int64_t entries, tail_entries;
  int64_t run, before, behind;
  int tail_lanes;
  int step;
  const float* weight;
  int64_t weight_stride;  // from block to block
  int64_t ahead;          // floats from these weights to those that will be read next: they are fetched with the first pixels
  int blocks, pixels;
  float* out;
  int64_t out_stride;  // from block to block
  Epilogue epilogue;
};

// A window over planes of (h, w), to planes of (oh, ow).
struct Window {
  int64_t h, w, oh, ow, kh, kw, sh, sw, pad_t, pad_l, dh, dw;
};

// x / (bias + alpha * sum of the squares of the channels from `before` before to `after` behind) ^ beta.
struct Lrn {
  int64_t channels, block_stride, before, after;
  float alpha, beta, bias;
};

enum class PoolMode : int64_t { max = 0, average_valid = 1, average_window = 2 };

struct Nc16Kernels {
  const char* name;
  int pixels, blocks;  // of a product that stay in registers: more pixels go in turns, more blocks must not be
  void (*product)(const Product& product);
  // Blocks of a panel of packed weights from `from` on: out (blocks, weights of a block, 16).
  void (*unpack)(const Packed& packed, const uint8_t* from, int64_t blocks, float* out);
  // The product of one to kPackedRows rows with them, each values (columns of all blocks) and the sums of each group; out (rows, 16).
  void (*packed_rows)(const Packed& packed, const uint8_t* from, const float* values, int64_t rows, int64_t blocks, float* out);
  // Rows [first, last) of one block: src (h, w, 16), weight (kh * kw, 16), out and residual (last - first, ow, 16).
  void (*depthwise_rows)(const Window& window, const float* src, const float* weight, int64_t first, int64_t last, float* out,
                         const Epilogue& epilogue);
  // Groups of `width` channels, 2, 4 or 8: (pixels, 16) -> (pixels, width, 16), where a lane of vector i has input i of
  // its group.
  void (*spread)(const float* src, int64_t pixels, int64_t width, float* dst);
  // Each channel `times` times, 2, 4, 8 or 16, side by side; of the blocks that this makes of one the one number `part`.
  void (*repeat)(const float* src, int64_t pixels, int64_t times, int64_t part, float* dst);
  // One row of one block; `pad_b`, `pad_r` count in PoolMode::average_window.
  void (*pool_row)(const Window& window, PoolMode mode, int64_t pad_b, int64_t pad_r, const float* src, int64_t oy,
                   float* out);
  void (*mean)(const float* src, int64_t pixels, float* out);  // (pixels, 16) -> (16)
  // Pixels side by side in each block; `squares` holds before + blocks * 16 + after floats.
  void (*lrn)(const Lrn& lrn, const float* src, int64_t pixels, float* squares, float* dst);
  // out[pixel][16], the sum or the largest of `taps` vectors of src, each times its share; places in floats.
  void (*mixed)(const float* src, const int64_t* places, const float* shares, int64_t pixels, int64_t taps, bool largest,
                float* out);
  // F(4x4, 3x3): the 6x6 inputs from (y, x) on, zero outside (h, w), to 36 vectors `stride` apart.
  void (*winograd_input)(const float* src, int64_t h, int64_t w, int64_t y, int64_t x, float* out, int64_t stride);
  // 36 vectors `stride` apart to the 4x4 outputs from (y, x) on that lie in (oh, ow).
  void (*winograd_output)(const float* products, int64_t stride, float* out, int64_t oh, int64_t ow, int64_t y,
                          int64_t x, const Epilogue& epilogue);
};

extern const Nc16Kernels kNc16Generic;
#if defined(__x86_64__)
extern const Nc16Kernels kNc16Avx2, kNc16Avx512;
#endif

// The best set of this processor.
const Nc16Kernels& nc16_kernels();

}  // namespace pocketfarm::cpu
