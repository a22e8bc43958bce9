// Functions of each element, one set for each instruction set.
#pragma once

#include <cstdint>

namespace pocketfarm::cpu {

// The functions of a `map`, by the codes of kernels/ir/expressions.py and kernels/lower/cpu/functions.py.
constexpr int kArities[] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                           1, 3, 2, 3, 1};
constexpr int kFunctions = sizeof(kArities) / sizeof(kArities[0]);
// Those of whole numbers; 0: there is none.
constexpr int kWholeArities[] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1};
constexpr int kWholeFunctions = sizeof(kWholeArities) / sizeof(kWholeArities[0]);

// How rows are normalised; 0 stands for their mean where they are not centred.
struct RowNorm {
  bool centred;
  float epsilon, least;
  const float *scale, *shift;  // of each element; no shift: null
};

// The mean of numbers, and the sum of their squared distances from it.
struct Moments {
  float mean;
  double squares;
};

struct ElementKernels {
  const char* name;
  // to[i] = function(a[i], b[i], c[i]) for i < n; `to` overlaps none of them, which those are null that it does not read.
  void (*apply)(int function, float* to, const float* a, const float* b, const float* c, int64_t n);
  // An activation (operations/operation.h) in place; NaN stays NaN.
  void (*activate)(float* data, int64_t count, int32_t activation, float lo, float hi);
  // Softmax of `count` columns side by side, each of `axis` elements that lie `stride` apart; `sums` has room for 2 * count.
  void (*softmax)(const float* src, float* dst, int64_t axis, int64_t stride, int64_t count, float* sums);
  // row[i] = the larger of the two or NaN, or their sum, for i < n.
  void (*fold_row)(bool largest, const float* src, float* row, int64_t n);
  // dst[i] = the largest, or the sum, of row[i * stride + k] for k < taps.
  void (*fold_windows)(bool largest, const float* row, float* dst, int64_t n, int64_t stride, int64_t taps);
  Moments (*moments)(const float* src, int64_t count);
  // dst = (src - mean) * factor + shift.
  void (*scale)(const float* src, float* dst, int64_t count, float mean, float factor, float shift);
  // dst = (src - mean) / max(sqrt(mean squared distance from the mean + epsilon), least) * scale + shift.
  void (*normalise_row)(const float* src, float* dst, int64_t count, const RowNorm& norm);
};

extern const ElementKernels kElementsGeneric;
#if defined(__x86_64__)
extern const ElementKernels kElementsAvx2, kElementsAvx512;
#endif

// A function of whole numbers that wrap around, as `ElementKernels::apply`.
void apply_whole(int function, int32_t* to, const int32_t* a, const int32_t* b, const int32_t* c, int64_t n);
void apply_whole(int function, int64_t* to, const int64_t* a, const int64_t* b, const int64_t* c, int64_t n);

// The best set of this processor.
const ElementKernels& element_kernels();

}  // namespace pocketfarm::cpu
