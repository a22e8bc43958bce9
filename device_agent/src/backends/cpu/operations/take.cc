// take and gather_values: copies of single elements.
#include <algorithm>

#include "operation.h"

namespace pocketfarm::cpu {
namespace {

constexpr int kAxes = 8;
constexpr int64_t kGrain = 4096;

struct Layout {
  explicit Layout(const Call& call)
      : base(call.ints[0]), extents(&call.ints[1]), strides(extents + kAxes), tables(strides + kAxes) {
    rows = 1;
    for (int axis = 0; axis + 1 < kAxes; ++axis) rows *= extents[axis];
  }
  const int32_t base, *extents, *strides, *tables;  // a table's first element; -1: elements lie in even steps
  int64_t rows;
};

Status check_take(const Call& call) {
  const Layout layout(call);
  const int32_t* d = layout.extents;
  Check check(call);
  check.sizes({d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7]});
  if (check.status()) return check.status();
  check.holds("dst", 2, {d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7]});
  for (int axis = 0; axis < kAxes; ++axis) {
    check.range("a table", layout.tables[axis], -1, Check::kMaxSize);
    if (layout.tables[axis] >= 0) check.holds("table", 1, {int64_t{layout.tables[axis]} + d[axis]});
  }
  return check.status();
}

// Which element of the source an axis adds; false where there is none.
bool add_place(const Layout& layout, const float* table, int axis, int64_t index, int64_t* place) {
  if (layout.tables[axis] < 0) {
    *place += index * layout.strides[axis];
    return true;
  }
  const float entry = table[layout.tables[axis] + index];
  if (!(entry >= 0 && entry <= Check::kMaxSize)) return false;
  *place += static_cast<int64_t>(entry) * layout.strides[axis];
  return true;
}

// What a table names beyond the source is as if it named nothing, so that no content of it can lead outside.
void run_take(const Call& call, ThreadPool& pool) {
  const Layout layout(call);
  const auto [src, elements] = call.buffers[0];
  const float *table = call.buffers[1].data, value = call.floats[0];
  constexpr int last = kAxes - 1;
  const int64_t length = layout.extents[last], stride = layout.strides[last];
  pool.ranges(layout.rows, std::max<int64_t>(1, kGrain / length), [&, src = src, elements = elements](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* dst = call.buffers[2].data + row * length;
      int64_t place = layout.base, rest = row;
      bool inside = true;
      for (int axis = last - 1; axis >= 0; rest /= layout.extents[axis--])
        inside = add_place(layout, table, axis, rest % layout.extents[axis], &place) && inside;
      const int64_t ends[] = {place, place + (length - 1) * stride};
      if (!inside) {
        std::fill_n(dst, length, value);
      } else if (layout.tables[last] < 0 && std::min(ends[0], ends[1]) >= 0 && std::max(ends[0], ends[1]) < elements) {
        for (int64_t i = 0; i < length; ++i) dst[i] = src[place + i * stride];
      } else {
        for (int64_t i = 0; i < length; ++i) {
          int64_t at = place;
          const bool there = add_place(layout, table, last, i, &at) && at >= 0 && at < elements;
          dst[i] = there ? src[at] : value;
        }
      }
    }
  });
}

Status check_gather(const Call& call) {
  const int64_t outer = call.ints[0], axis = call.ints[1], inner = call.ints[2], indices = call.ints[3];
  Check check(call);
  check.sizes({outer, axis, inner, indices});
  if (check.status()) return check.status();
  return check.holds("src", 0, {outer, axis, inner})
      .holds("indices", 1, {indices})
      .holds("dst", 2, {outer, indices, inner})
      .status();
}

void run_gather(const Call& call, ThreadPool& pool) {
  const int64_t outer = call.ints[0], axis = call.ints[1], inner = call.ints[2], indices = call.ints[3];
  const float *src = call.buffers[0].data, *places = call.buffers[1].data;
  pool.ranges(outer * indices, std::max<int64_t>(1, kGrain / inner), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float asked = places[row % indices];
      const double wanted = asked < 0 ? double{asked} + static_cast<double>(axis) : asked;  // NaN: the first
      const auto place = static_cast<int64_t>(wanted > 0 ? std::min(wanted, static_cast<double>(axis - 1)) : 0);
      std::copy_n(src + (row / indices * axis + place) * inner, inner, call.buffers[2].data + row * inner);
    }
  });
}

}  // namespace

const Operation kTake{"take", 3, 1 + 3 * kAxes, 1, check_take, run_take};
const Operation kGatherValues{"gather_values", 3, 4, 0, check_gather, run_gather};

}  // namespace pocketfarm::cpu
