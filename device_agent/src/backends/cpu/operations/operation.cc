#include "operation.h"

#include "backends/cpu/elements/kernels.h"

namespace pocketfarm::cpu {
namespace {

const Operation* const kOperations[] = {
    &kConv2d,     &kMatmul, &kPool2d,       &kSoftmax,  &kBinary, &kAffine, &kInstanceNorm, &kPad2d,             &kResize2d, &kConv2dIm2col, &kIm2col, &kConv2dSequential, &kDenseSequential, &kConv2dNc16, &kDepthwiseNc16,
    &kWinogradNc16, &kPool2dNc16, &kGlobalAveragePoolNc16, &kToNc16, &kFromNc16,
    &kDenseNc16, &kDensePacked, &kGatherPacked, &kLrnNc16, &kConv2dInt8, &kDepthwiseInt8, &kDenseInt8, &kMap, &kMapWhole, &kTake, &kGatherValues, &kPutRows, &kReduce, &kSortRows, &kSuppressRows, &kRoiAlignNc16,
    &kAttention, &kRowNorm, &kAppend, &kAttend, &kGather, &kGatherBytes, &kActivate, &kActivationGradient, &kCrossEntropy, &kSquaredError,
    &kColumnSums, &kAccumulate, &kGradientStep, &kMomentumStep, &kCountBatch, &kUnfold, &kFold, &kMaxPool,
    &kMaxPoolGradient, &kAveragePool, &kAveragePoolGradient, &kProduct};

}  // namespace

const Operation* find_operation(const std::string& name) {
  for (const Operation* operation : kOperations)
    if (name == operation->name) return operation;
  return nullptr;
}

std::string operation_names() {
  std::string out;
  for (const Operation* operation : kOperations) (out += out.empty() ? "" : ", ") += operation->name;
  return out;
}

size_t wrong_buffer(const Operation& operation, const Call& call) {
  const View* alike = nullptr;
  for (size_t k = 0; k < call.buffers.size(); ++k) {
    const char letter = operation.types == nullptr ? 'f' : operation.types[k];
    const Type type = call.buffers[k].type;
    const bool number = type == Type::f32 || type == Type::i32 || type == Type::i64;
    bool right = letter == '.';
    if (letter == 'f') right = type == Type::f32;
    if (letter == 'i') right = type == Type::i32;
    if (letter == 'l') right = type == Type::i64;
    if (letter == 'b') right = type == Type::i8;
    if (letter == 'u') right = type == Type::u8;
    if (letter == 'p') right = type == Type::i32 || type == Type::i64;
    if (letter == 'n') right = number;
    if (letter == 'e' || letter == 'v') right = type != Type::f16;
    if (letter == 'n' || letter == 'e') {
      if (alike == nullptr) alike = &call.buffers[k];
      right &= type == alike->type;
    }
    if (!right) return k;
  }
  return call.buffers.size();
}

Check& Check::that(bool ok, const std::string& message) {
  if (!ok && !status_) status_ = Error{Code::plan_invalid, message};
  return *this;
}

Check& Check::range(const char* name, int64_t value, int64_t min, int64_t max) {
  return that(value >= min && value <= max, std::string(name) + " is " + std::to_string(value) + ", allowed: " +
                                                std::to_string(min) + " to " + std::to_string(max));
}

Check& Check::sizes(std::initializer_list<int64_t> values) {
  for (int64_t value : values) range("a size or stride", value, 1, kMaxSize);
  return *this;
}

Check& Check::holds(const char* name, size_t buffer, std::initializer_list<int64_t> extents) {
  int64_t elements = 1;
  bool overflow = false;
  for (int64_t extent : extents) overflow |= __builtin_mul_overflow(elements, extent, &elements);
  const int64_t have = call_.buffers[buffer].elements;
  return that(!overflow && elements <= have, std::string("buffer of `") + name + "` has " + std::to_string(have) +
                                                 " elements, the sizes ask for " +
                                                 (overflow ? "more than 2^63" : std::to_string(elements)));
}

Check& Check::holds(const char* name, size_t buffer, std::initializer_list<int64_t> extents, Type type) {
  const Type held = call_.buffers[buffer].type;
  return that(held == type, std::string("buffer of `") + name + "` holds " + word(held) + ", not " + word(type)).holds(name, buffer, extents);
}

void activate(float* data, int64_t count, int32_t activation, float lo, float hi) {
  element_kernels().activate(data, count, activation, lo, hi);
}

}  // namespace pocketfarm::cpu
