// map and map_whole: an expression of up to four operands, of each element (kernels/ir/expressions.py has the functions'
// codes), in floats, or in whole numbers of 32 or 64 bits. Operands of other types are converted, and so is the result.
#include <algorithm>

#include "backends/cpu/elements/kernels.h"
#include "operation.h"

namespace pocketfarm::cpu {
namespace {

constexpr int kAxes = 6, kOperands = 4, kNumbers = 16, kInstructions = 32;
constexpr int kFirstResult = kOperands + kNumbers;
constexpr int64_t kBlock = 256;  // elements that pass through the whole expression together
constexpr int64_t kGrain = 4096;
constexpr int64_t kElementWork = 4;  // of an instruction

// Its ints: operands, instructions, extents, strides of each operand, instructions as (function, three registers); of
// map_whole then the numbers' lower and upper words by turns, and whether registers have 64 bits.
struct Layout {
  explicit Layout(const Call& call)
      : operands(call.ints[0]), instructions(call.ints[1]), extents(&call.ints[2]), strides(extents + kAxes),
        program(strides + kOperands * kAxes), numbers(program + kInstructions) {}
  const int32_t operands, instructions, *extents, *strides, *program, *numbers;
};

struct Instruction {
  explicit Instruction(int32_t word)
      : function(word >> 24 & 0xff), registers{word >> 16 & 0xff, word >> 8 & 0xff, word & 0xff} {}
  int function, registers[3];
};

template <int kCount>
Status check_expression(const Call& call, const int (&arities)[kCount]) {
  const Layout layout(call);
  Check check(call);
  check.range("operands", layout.operands, 0, kOperands).range("instructions", layout.instructions, 1, kInstructions);
  const int32_t* d = layout.extents;
  check.sizes({d[0], d[1], d[2], d[3], d[4], d[5]});
  if (check.status()) return check.status();
  check.holds("dst", kOperands, {d[0], d[1], d[2], d[3], d[4], d[5]});
  for (int k = 0; k < layout.operands; ++k) {
    int64_t last = 0;  // each term is below 2^56
    for (int axis = 0; axis < kAxes; ++axis) {
      const int64_t stride = layout.strides[k * kAxes + axis];
      check.range("a stride", stride, 0, Check::kMaxSize);
      last += (d[axis] - 1) * std::max<int64_t>(0, stride);
    }
    check.holds("an operand", k, {last + 1});
  }
  for (int i = 0; i < layout.instructions; ++i) {
    const Instruction one(layout.program[i]);
    check.range("a function", one.function, 0, kCount - 1);
    if (!check.status()) check.that(arities[one.function] > 0, "there is no function " + std::to_string(one.function));
    if (check.status()) return check.status();
    for (int k = 0; k < arities[one.function]; ++k) {
      const int from = one.registers[k];
      check.that(from < kFirstResult + i && (from >= kOperands || from < layout.operands),
                 "instruction " + std::to_string(i) + " reads register " + std::to_string(from) + ", which has no value");
    }
  }
  return check.status();
}

Status check_map(const Call& call) { return check_expression(call, kArities); }

Status check_map_whole(const Call& call) {
  const Status error = Check(call).range("wide", call.ints.back(), 0, 1).status();
  return error ? error : check_expression(call, kWholeArities);
}

// `count` numbers that lie `stride` apart.
template <typename From, typename To>
void copy(const From* from, int64_t stride, int64_t count, To* to) {
  if constexpr (std::is_same_v<From, To>) {
    if (stride == 1) return void(std::copy_n(from, count, to));
  }
  if (stride == 0) return void(std::fill_n(to, count, converted<To>(*from)));
  for (int64_t i = 0; i < count; ++i) to[i] = converted<To>(from[i * stride]);
}

// Values of one operand for `count` elements from `begin` on.
template <typename From, typename To>
void load(const From* src, const int32_t* extents, const int32_t* strides, int64_t begin, int64_t count, To* to) {
  int64_t at[kAxes], rest = begin;
  for (int axis = kAxes - 1; axis >= 0; --axis) at[axis] = rest % extents[axis], rest /= extents[axis];
  constexpr int last = kAxes - 1;
  while (count > 0) {
    int64_t place = 0;
    for (int axis = 0; axis < kAxes; ++axis) place += at[axis] * strides[axis];
    const int64_t run = std::min<int64_t>(count, extents[last] - at[last]);
    copy(src + place, strides[last], run, to);
    to += run;
    count -= run;
    at[last] += run;
    for (int axis = last; axis > 0 && at[axis] == extents[axis]; --axis) at[axis] = 0, ++at[axis - 1];
  }
}

constexpr Type type_of(float) { return Type::f32; }
constexpr Type type_of(int32_t) { return Type::i32; }
constexpr Type type_of(int64_t) { return Type::i64; }

// The result's elements from `begin` on.
template <typename T>
void store(const View& dst, int64_t begin, int64_t count, const T* from) {
  if (dst.type == Type::truth) {
    for (int64_t i = 0; i < count; ++i) dst.as<uint8_t>()[begin + i] = from[i] != 0 ? 1 : 0;
  } else {
    with_type(dst.type, [&](auto like) { copy(from, 1, count, dst.as<decltype(like)>() + begin); });
  }
}

// Number `k` of a call's own.
template <typename T>
T number(const Call& call, const Layout& layout, int k) {
  if constexpr (std::is_same_v<T, float>) {
    return call.floats[k];
  } else {
    const auto low = static_cast<uint32_t>(layout.numbers[2 * k]), high = static_cast<uint32_t>(layout.numbers[2 * k + 1]);
    return static_cast<T>(uint64_t{high} << 32 | low);
  }
}

// Where registers' values lie for the block that is computed; operands of their type that lie as the result does are read in
// place.
template <typename T>
class Registers {
 public:
  // For blocks of at most `count` elements.
  Registers(const Call& call, const Layout& layout, T* scratch, int64_t count)
      : call_(call), layout_(layout), scratch_(scratch) {
    bool used[kFirstResult + 1] = {};
    for (int i = 0; i < layout.instructions; ++i)
      for (const int from : Instruction(layout.program[i]).registers) used[std::min(from, kFirstResult)] = true;
    for (int k = kOperands; k < kFirstResult; ++k)
      if (used[k]) std::fill_n(own(k), count, number<T>(call, layout, k - kOperands));
    for (int k = 0; k < layout.operands; ++k) {
      int64_t natural = 1;
      in_place_[k] = call.buffers[k].type == type_of(T{});
      for (int axis = kAxes - 1; axis >= 0; natural *= layout.extents[axis--])
        in_place_[k] &= layout.extents[axis] == 1 || layout.strides[k * kAxes + axis] == natural;
    }
  }
  void load_operands(int64_t begin, int64_t count) {
    for (int k = 0; k < layout_.operands; ++k) {
      const View& src = call_.buffers[k];
      values_[k] = in_place_[k] ? src.as<T>() + begin : own(k);
      if (!in_place_[k])
        with_type(src.type, [&](auto like) {
          load(src.as<decltype(like)>(), layout_.extents, layout_.strides + k * kAxes, begin, count, own(k));
        });
    }
  }
  const T* operator[](int index) const { return index < kOperands ? values_[index] : own(index); }
  T* own(int index) const { return scratch_ + index * kBlock; }

 private:
  const Call& call_;
  const Layout& layout_;
  T* const scratch_;
  const T* values_[kOperands] = {};
  bool in_place_[kOperands] = {};
};

template <typename T, int kCount, typename Apply>
void run_expression(const Call& call, ThreadPool& pool, const int (&arities)[kCount], Apply apply) {
  const Layout layout(call);
  int64_t total = 1;
  for (int axis = 0; axis < kAxes; ++axis) total *= layout.extents[axis];
  const int64_t tasks = (total + kGrain - 1) / kGrain;
  const View& dst = call.buffers[kOperands];
  const bool is_converted = dst.type != type_of(T{});
  pool.each(tasks, [&](int64_t task, int thread) {
    const int64_t end = std::min(total, (task + 1) * kGrain);
    constexpr size_t kFloats = (kFirstResult + kInstructions) * kBlock * sizeof(T) / sizeof(float);
    auto* scratch = reinterpret_cast<T*>(pool.scratch(thread, kFloats));
    Registers<T> registers(call, layout, scratch, std::min(kBlock, end - task * kGrain));
    for (int64_t begin = task * kGrain; begin < end; begin += kBlock) {
      const int64_t count = std::min(kBlock, end - begin);
      registers.load_operands(begin, count);
      for (int i = 0; i < layout.instructions; ++i) {
        const Instruction step(layout.program[i]);
        const T* from[3] = {};
        for (int k = 0; k < arities[step.function]; ++k) from[k] = registers[step.registers[k]];
        T* to = is_converted || i + 1 < layout.instructions ? registers.own(kFirstResult + i) : dst.as<T>() + begin;
        apply(step.function, to, from[0], from[1], from[2], count);
      }
      if (is_converted) store(dst, begin, count, registers.own(kFirstResult + layout.instructions - 1));
    }
  }, kElementWork * total * (1 + layout.instructions));
}

void run_map(const Call& call, ThreadPool& pool) { run_expression<float>(call, pool, kArities, element_kernels().apply); }

template <typename T>
void run_whole(const Call& call, ThreadPool& pool) {
  run_expression<T>(call, pool, kWholeArities, static_cast<void (*)(int, T*, const T*, const T*, const T*, int64_t)>(apply_whole));
}

void run_map_whole(const Call& call, ThreadPool& pool) { call.ints.back() == 0 ? run_whole<int32_t>(call, pool) : run_whole<int64_t>(call, pool); }

constexpr size_t kInts = 2 + kAxes * (1 + kOperands) + kInstructions;

}  // namespace

const Operation kMap{"map", kOperands + 1, kInts, kNumbers, check_map, run_map, "vvvvv"};
const Operation kMapWhole{"map_whole", kOperands + 1, kInts + 2 * kNumbers + 1, 0, check_map_whole, run_map_whole, "vvvvv"};

}  // namespace pocketfarm::cpu
