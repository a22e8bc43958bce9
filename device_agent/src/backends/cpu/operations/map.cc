// map: an expression of up to four operands, of each element (kernels/ir/expressions.py has the functions' codes).
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

// Its ints: operands, instructions, extents, strides of each operand, instructions as (function, three registers).
struct Layout {
  explicit Layout(const Call& call)
      : operands(call.ints[0]), instructions(call.ints[1]), extents(&call.ints[2]), strides(extents + kAxes),
        program(strides + kOperands * kAxes) {}
  const int32_t operands, instructions, *extents, *strides, *program;
};

struct Instruction {
  explicit Instruction(int32_t word)
      : function(word >> 24 & 0xff), registers{word >> 16 & 0xff, word >> 8 & 0xff, word & 0xff} {}
  int function, registers[3];
};

Status check_map(const Call& call) {
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
    check.range("a function", one.function, 0, kFunctions - 1);
    if (check.status()) return check.status();
    for (int k = 0; k < kArities[one.function]; ++k) {
      const int from = one.registers[k];
      check.that(from < kFirstResult + i && (from >= kOperands || from < layout.operands),
                 "instruction " + std::to_string(i) + " reads register " + std::to_string(from) + ", which has no value");
    }
  }
  return check.status();
}

// Values of one operand for `count` elements from `begin` on.
void load(const float* src, const int32_t* extents, const int32_t* strides, int64_t begin, int64_t count, float* to) {
  int64_t at[kAxes], rest = begin;
  for (int axis = kAxes - 1; axis >= 0; --axis) at[axis] = rest % extents[axis], rest /= extents[axis];
  constexpr int last = kAxes - 1;
  while (count > 0) {
    int64_t place = 0;
    for (int axis = 0; axis < kAxes; ++axis) place += at[axis] * strides[axis];
    const int64_t run = std::min<int64_t>(count, extents[last] - at[last]);
    const float* from = src + place;
    if (strides[last] == 1) {
      std::copy_n(from, run, to);
    } else if (strides[last] == 0) {
      std::fill_n(to, run, *from);
    } else {
      for (int64_t i = 0; i < run; ++i) to[i] = from[i * strides[last]];
    }
    to += run;
    count -= run;
    at[last] += run;
    for (int axis = last; axis > 0 && at[axis] == extents[axis]; --axis) at[axis] = 0, ++at[axis - 1];
  }
}

// Where registers' values lie for the block that is computed; operands that lie as the result does are read in place.
class Registers {
 public:
  // For blocks of at most `count` elements.
  Registers(const Call& call, const Layout& layout, float* scratch, int64_t count)
      : call_(call), layout_(layout), scratch_(scratch) {
    bool used[kFirstResult + 1] = {};
    for (int i = 0; i < layout.instructions; ++i)
      for (const int from : Instruction(layout.program[i]).registers) used[std::min(from, kFirstResult)] = true;
    for (int k = kOperands; k < kFirstResult; ++k)
      if (used[k]) std::fill_n(own(k), count, call.floats[k - kOperands]);
    for (int k = 0; k < layout.operands; ++k) {
      int64_t natural = 1;
      in_place_[k] = true;
      for (int axis = kAxes - 1; axis >= 0; natural *= layout.extents[axis--])
        in_place_[k] &= layout.extents[axis] == 1 || layout.strides[k * kAxes + axis] == natural;
    }
  }
  void load_operands(int64_t begin, int64_t count) {
    for (int k = 0; k < layout_.operands; ++k) {
      const float* src = call_.buffers[k].data;
      values_[k] = in_place_[k] ? src + begin : own(k);
      if (!in_place_[k]) load(src, layout_.extents, layout_.strides + k * kAxes, begin, count, own(k));
    }
  }
  const float* operator[](int index) const { return index < kOperands ? values_[index] : own(index); }
  float* own(int index) const { return scratch_ + index * kBlock; }

 private:
  const Call& call_;
  const Layout& layout_;
  float* const scratch_;
  const float* values_[kOperands] = {};
  bool in_place_[kOperands] = {};
};

void run_map(const Call& call, ThreadPool& pool) {
  const Layout layout(call);
  int64_t total = 1;
  for (int axis = 0; axis < kAxes; ++axis) total *= layout.extents[axis];
  const int64_t tasks = (total + kGrain - 1) / kGrain;
  const ElementKernels& kernels = element_kernels();
  pool.each(tasks, [&](int64_t task, int thread) {
    const int64_t end = std::min(total, (task + 1) * kGrain);
    Registers registers(call, layout, pool.scratch(thread, (kFirstResult + kInstructions) * kBlock), std::min(kBlock, end - task * kGrain));
    for (int64_t begin = task * kGrain; begin < end; begin += kBlock) {
      const int64_t count = std::min(kBlock, end - begin);
      registers.load_operands(begin, count);
      for (int i = 0; i < layout.instructions; ++i) {
        const Instruction step(layout.program[i]);
        const float* from[3] = {};
        for (int k = 0; k < kArities[step.function]; ++k) from[k] = registers[step.registers[k]];
        kernels.apply(step.function, registers.own(kFirstResult + i), from[0], from[1], from[2], count);
      }
      std::copy_n(registers.own(kFirstResult + layout.instructions - 1), count, call.buffers[kOperands].data + begin);
    }
  }, kElementWork * total * (1 + layout.instructions));
}

}  // namespace

const Operation kMap{"map", kOperands + 1, 2 + kAxes * (1 + kOperands) + kInstructions, kNumbers, check_map, run_map};

}  // namespace pocketfarm::cpu
