// instance_norm, pad2d and resize2d: one plane after the other.
#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/cpu/elements/kernels.h"
#include "operation.h"

namespace pocketfarm::cpu {
namespace {

Status check_instance_norm(const Call& call) {
  const int64_t n = call.ints[0], c = call.ints[1], hw = call.ints[2], groups = call.ints[3];
  return Check(call)
      .sizes({n, c, hw, groups})
      .that(groups < 1 || c % groups == 0, "the groups must divide the channels")
      .range("activation", call.ints[4], 0, kLastActivation)
      .holds("src", 0, {n, c, hw})
      .holds("scale", 1, {c})
      .holds("shift", 2, {c})
      .holds("dst", 3, {n, c, hw})
      .status();
}

constexpr int64_t kNormaliseWork = 32, kPadWork = 4, kResizeWork = 8;  // of an element

void run_instance_norm(const Call& call, ThreadPool& pool) {
  const int64_t c = call.ints[1], hw = call.ints[2], groups = int64_t{call.ints[0]} * call.ints[3], size = c / call.ints[3];
  const ElementKernels& kernels = element_kernels();
  std::vector<Moments> moments(groups * size);
  const auto measure = [&](int64_t plane) { moments[plane] = kernels.moments(call.buffers[0].as<float>() + plane * hw, hw); };
  const auto join = [&](int64_t group) {  // of planes of one size
    Moments* each = &moments[group * size];
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < size; ++i) mean += each[i].mean / static_cast<double>(size);
    for (int64_t i = 0; i < size; ++i) {
      const double distance = each[i].mean - mean;
      squares += each[i].squares + distance * distance * static_cast<double>(hw);
    }
    std::fill(each, each + size, Moments{static_cast<float>(mean), squares / static_cast<double>(size * hw)});
  };
  const auto apply = [&](int64_t plane) {
    const double root = std::sqrt(moments[plane].squares + static_cast<double>(call.floats[0]));
    const float factor = static_cast<float>(static_cast<double>(call.buffers[1].as<float>()[plane % c]) / root);
    float* dst = call.buffers[3].as<float>() + plane * hw;
    kernels.scale(call.buffers[0].as<float>() + plane * hw, dst, hw, moments[plane].mean, factor, call.buffers[2].as<float>()[plane % c]);
    activate(dst, hw, call.ints[4], call.floats[1], call.floats[2]);
  };
  const int64_t work = kNormaliseWork * groups * size * hw;
  if (groups >= pool.threads()) {  // what is measured is still in a core's cache
    pool.each(groups, [&](int64_t group, int) {
      for (int64_t i = 0; i < size; ++i) measure(group * size + i);
      join(group);
      for (int64_t i = 0; i < size; ++i) apply(group * size + i);
    }, work);
    return;
  }
  pool.each(groups * size, [&](int64_t plane, int) { measure(plane); }, work / 2);
  for (int64_t group = 0; group < groups; ++group) join(group);
  pool.each(groups * size, [&](int64_t plane, int) { apply(plane); }, work / 2);
}

enum PadMode : int64_t { kConstant = 0, kReflect = 1, kEdge = 2 };

Status check_pad(const Call& call) {
  const int32_t* i = call.ints.data();
  const int64_t planes = i[0], h = i[1], w = i[2], top = i[3], left = i[4], bottom = i[5], right = i[6];
  Check check(call);
  check.sizes({planes, h, w}).range("mode", i[7], 0, 2);
  for (int64_t pad : {top, left, bottom, right}) check.range("a pad", pad, 0, Check::kMaxSize);
  if (i[7] == kReflect)
    check.that(std::max(top, bottom) < h && std::max(left, right) < w, "reflected pads must be below the extents");
  if (check.status()) return check.status();
  return check.holds("src", 0, {planes, h, w}).holds("dst", 1, {planes, h + top + bottom, w + left + right}).status();
}

// Where element `at` of a padded axis comes from; negative: from outside.
int64_t padded_source(int64_t at, int64_t extent, int64_t mode) {
  if (mode == kReflect) return at < 0 ? -at : at >= extent ? 2 * (extent - 1) - at : at;
  if (mode == kEdge) return std::clamp<int64_t>(at, 0, extent - 1);
  return at < extent ? at : -1;
}

void run_pad(const Call& call, ThreadPool& pool) {
  const int32_t* i = call.ints.data();
  const int64_t h = i[1], w = i[2], top = i[3], left = i[4], right = i[6], mode = i[7];
  const int64_t oh = h + top + i[5], ow = w + left + right;
  pool.shared(i[0] * oh, kPadWork * ow, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* dst = call.buffers[1].as<float>() + row * ow;
      const int64_t y = padded_source(row % oh - top, h, mode);
      if (y < 0) {
        std::fill_n(dst, ow, call.floats[0]);
        continue;
      }
      const float* src = call.buffers[0].as<float>() + (row / oh * h + y) * w;
      const auto outside = [&](int64_t x) {
        const int64_t from = padded_source(x - left, w, mode);
        dst[x] = from < 0 ? call.floats[0] : src[from];
      };
      for (int64_t x = 0; x < left; ++x) outside(x);
      std::copy_n(src, w, dst + left);
      for (int64_t x = left + w; x < ow; ++x) outside(x);
    }
  });
}

// Coordinates of one axis: (o * step + start) / divisor, kept inside.
struct Axis {
  int64_t extent, size, step, start, divisor;

  int64_t scaled(int64_t o) const { return std::clamp<int64_t>(o * step + start, 0, (extent - 1) * divisor); }
};

Axis axis_of(const Call& call, int number) {
  const int32_t* i = call.ints.data();
  const int32_t* way = i + 5 + 3 * number;
  return {i[1 + number], i[3 + number], way[0], way[1], way[2]};
}

Status check_resize(const Call& call) {
  const int64_t planes = call.ints[0];
  Check check(call);
  check.sizes({planes}).range("linear", call.ints[11], 0, 1);
  for (int number : {0, 1}) {
    const Axis axis = axis_of(call, number);
    check.sizes({axis.extent, axis.size, axis.divisor}).range("a step", axis.step, 0, 2 * Check::kMaxSize);
  }
  if (check.status()) return check.status();
  return check.holds("src", 0, {planes, call.ints[1], call.ints[2]})
      .holds("dst", 1, {planes, call.ints[3], call.ints[4]})
      .status();
}

// Where the columns of a row lie between two of the source.
struct Columns {
  explicit Columns(const Axis& axis) : left(axis.size), right(axis.size), share(axis.size) {
    for (size_t o = 0; o < left.size(); ++o) {
      const int64_t x = axis.scaled(static_cast<int64_t>(o));
      left[o] = static_cast<int32_t>(x / axis.divisor);
      right[o] = static_cast<int32_t>(std::min<int64_t>(left[o] + 1, axis.extent - 1));
      share[o] = static_cast<float>(x % axis.divisor) / static_cast<float>(axis.divisor);
    }
  }
  void take(const float* src, float* dst) const {
    for (size_t o = 0; o < left.size(); ++o) dst[o] = src[left[o]];
  }
  void mix(const float* src, float* dst) const {
    for (size_t o = 0; o < left.size(); ++o) dst[o] = src[left[o]] * (1 - share[o]) + src[right[o]] * share[o];
  }

 private:
  std::vector<int32_t> left, right;
  std::vector<float> share;
};

// Rows of the source, their columns mixed: a row between two others needs both, the next one mostly the same.
class MixedRows {
 public:
  MixedRows(const Columns& columns, int64_t size) : columns_(columns), rows_{Row(size), Row(size)} {}

  const float* of(const float* src) {
    for (Row& row : rows_)
      if (row.source == src) return (last_ = &row)->values.data();
    Row& row = last_ == &rows_[0] ? rows_[1] : rows_[0];
    columns_.mix(src, row.values.data());
    row.source = src;
    return (last_ = &row)->values.data();
  }

 private:
  struct Row {
    explicit Row(int64_t size) : values(static_cast<size_t>(size)) {}
    std::vector<float> values;
    const float* source = nullptr;
  };
  const Columns& columns_;
  Row rows_[2];
  Row* last_ = nullptr;
};

void run_resize(const Call& call, ThreadPool& pool) {
  const Axis rows = axis_of(call, 0), columns = axis_of(call, 1);
  const bool linear = call.ints[11] != 0;
  const Columns across(columns);
  pool.shared(int64_t{call.ints[0]} * rows.size, kResizeWork * columns.size, [&](int64_t begin, int64_t end) {
    MixedRows mixed(across, columns.size);
    for (int64_t row = begin; row < end; ++row) {
      const int64_t y = rows.scaled(row % rows.size), y0 = y / rows.divisor, y1 = std::min(y0 + 1, rows.extent - 1);
      const float* plane = call.buffers[0].as<float>() + row / rows.size * rows.extent * columns.extent;
      float* dst = call.buffers[1].as<float>() + row * columns.size;
      if (!linear) {
        across.take(plane + y0 * columns.extent, dst);
        continue;
      }
      const float share = static_cast<float>(y % rows.divisor) / static_cast<float>(rows.divisor);
      const float* above = mixed.of(plane + y0 * columns.extent);
      const float* below = mixed.of(plane + y1 * columns.extent);
      for (int64_t o = 0; o < columns.size; ++o) dst[o] = above[o] * (1 - share) + below[o] * share;
    }
  });
}

}  // namespace

const Operation kInstanceNorm{"instance_norm", 4, 5, 3, check_instance_norm, run_instance_norm};
const Operation kPad2d{"pad2d", 2, 8, 1, check_pad, run_pad};
const Operation kResize2d{"resize2d", 2, 12, 0, check_resize, run_resize};

}  // namespace pocketfarm::cpu
