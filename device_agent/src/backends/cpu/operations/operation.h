// The built-in operations: the other side of kernels/lower/cpu/agent_operations.py, which says what each means.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "system/status.h"
#include "backends/cpu/threads/thread_pool.h"

namespace pocketfarm::cpu {

struct View {
  float* data;
  int64_t elements;
};

// One call with its arguments in the order of the contract: buffers, whole numbers, floats.
struct Call {
  std::vector<View> buffers;
  std::vector<int32_t> ints;
  std::vector<float> floats;
};

struct Operation {
  const char* name;
  size_t buffers, ints, floats;
  // Every number is in range and every buffer large enough, so that `run` cannot leave it.
  Status (*check)(const Call& call);
  void (*run)(const Call& call, ThreadPool& pool);
};

// Null for an unknown name.
const Operation* find_operation(const std::string& name);
std::string operation_names();

// Collects the first fault of a call.
class Check {
 public:
  explicit Check(const Call& call) : call_(call) {}
  // Argument `name` lies in [min, max].
  Check& range(const char* name, int64_t value, int64_t min, int64_t max);
  // All are in [1, 2^28].
  Check& sizes(std::initializer_list<int64_t> values);
  // Buffer number `buffer` has at least the product of `extents` elements.
  Check& holds(const char* name, size_t buffer, std::initializer_list<int64_t> extents);
  Check& that(bool ok, const std::string& message);
  Status status() const { return status_; }

  static constexpr int64_t kMaxSize = int64_t{1} << 28;

 private:
  const Call& call_;
  Status status_;
};

enum class Activation : int32_t {
  none = 0,
  relu = 1,
  clip = 2,
  sigmoid = 3,
  leaky_relu = 4,
  hard_sigmoid = 5,
  hard_swish = 6,
  tanh = 7,
  silu = 8,
  gelu = 9
};
constexpr int32_t kLastActivation = 9;

// Applies an activation in place; NaN stays NaN.
void activate(float* data, int64_t count, int32_t activation, float lo, float hi);

extern const Operation kConv2d, kDense, kMatmul, kPool2d, kGlobalAveragePool, kSoftmax, kLrn, kActivation, kBinary,
    kAffine, kInstanceNorm, kPad2d, kResize2d, kTranspose, kCopyBlock,
    kTakeBlock, kConv2dIm2col, kIm2col, kConv2dSequential, kDenseSequential, kConv2dNc16, kDepthwiseNc16, kWinogradNc16, kPool2dNc16,
    kGlobalAveragePoolNc16, kToNc16, kFromNc16, kDenseNc16, kLrnNc16, kAttention, kRowNorm, kConv2dInt8, kDepthwiseInt8, kDenseInt8, kMap, kTake, kGatherValues,
    kReduce, kSortRows, kSuppressRows, kRoiAlignNc16,
    kGather, kGatherBytes, kActivate,
    kActivationGradient, kCrossEntropy, kSquaredError, kColumnSums, kAccumulate, kGradientStep, kMomentumStep, kCountBatch,
    kUnfold, kFold, kMaxPool, kMaxPoolGradient, kAveragePool, kAveragePoolGradient, kTrainingProduct;

}  // namespace pocketfarm::cpu
