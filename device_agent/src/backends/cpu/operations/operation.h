// The built-in operations: the other side of kernels/lower/cpu/agent_operations.py, which says what each means.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "plan/plan.h"
#include "system/status.h"
#include "backends/cpu/threads/thread_pool.h"

namespace pocketfarm::cpu {

struct View {
  void* data;
  Type type;
  int64_t elements;

  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

// Calls `use` with a number of the type in which elements are read and written.
template <typename Use>
void with_type(Type type, Use use) {
  switch (type) {
    case Type::f32: return use(float{});
    case Type::i32: return use(int32_t{});
    case Type::i64: return use(int64_t{});
    case Type::i8: return use(int8_t{});
    default: return use(uint8_t{});
  }
}

// The same with a whole number of an element's size, for operations that only move it.
template <typename Use>
void with_size(Type type, Use use) {
  size_of(type) == 8 ? use(uint64_t{}) : size_of(type) == 4 ? use(uint32_t{}) : use(uint8_t{});
}

// A number in another type. Of a float its whole part, of which the narrow types keep the last bits; the least number of the
// type where there is none of it, as x86 processors convert. A whole number keeps its last bits.
template <typename To, typename From>
To converted(From x) {
  if constexpr (std::is_same_v<From, float> && sizeof(To) == 1) {
    return static_cast<To>(converted<int32_t>(x));
  } else if constexpr (std::is_same_v<From, float> && std::is_integral_v<To>) {
    constexpr float kEnd = static_cast<float>(uint64_t{1} << (8 * sizeof(To) - 1));
    return x >= -kEnd && x < kEnd ? static_cast<To>(x) : std::numeric_limits<To>::min();
  } else {
    return static_cast<To>(x);
  }
}

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
  // What each buffer may hold, a letter each: f fp32, i int32, l int64, b int8, u uint8, p places (int32 or int64), n numbers (fp32,
  // int32 or int64) and e elements of any type, of which all of a call are alike, v values of any type, . what the ints say.
  // Null: all are fp32.
  const char* types = nullptr;
};

// The first buffer that holds no type that it may, or their number.
size_t wrong_buffer(const Operation& operation, const Call& call);

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
  // And these are of this type.
  Check& holds(const char* name, size_t buffer, std::initializer_list<int64_t> extents, Type type);
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
  gelu = 9,
  gelu_tanh = 10
};
constexpr int32_t kLastActivation = 10;

// Applies an activation in place; NaN stays NaN.
void activate(float* data, int64_t count, int32_t activation, float lo, float hi);

extern const Operation kConv2d, kMatmul, kPool2d, kSoftmax, kBinary,
    kAffine, kInstanceNorm, kPad2d, kResize2d, kConv2dIm2col, kIm2col, kConv2dSequential, kDenseSequential, kConv2dNc16, kDepthwiseNc16, kWinogradNc16, kPool2dNc16,
    kGlobalAveragePoolNc16, kToNc16, kFromNc16, kDenseNc16, kDensePacked, kGatherPacked, kLrnNc16, kAttention, kRowNorm, kAppend, kAttend, kConv2dInt8, kDepthwiseInt8, kDenseInt8, kMap, kMapWhole, kTake, kGatherValues, kPutRows,
    kReduce, kSortRows, kSuppressRows, kRoiAlignNc16,
    kGather, kGatherBytes, kActivate,
    kActivationGradient, kCrossEntropy, kSquaredError, kColumnSums, kAccumulate, kGradientStep, kMomentumStep, kCountBatch,
    kUnfold, kFold, kMaxPool, kMaxPoolGradient, kAveragePool, kAveragePoolGradient, kProduct;

}  // namespace pocketfarm::cpu
