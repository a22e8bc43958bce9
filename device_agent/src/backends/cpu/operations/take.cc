// take, gather_values and put_rows: copies of elements from wherever they lie.
#include <algorithm>
#include <cstring>

#include "operation.h"

namespace pocketfarm::cpu {
namespace {

constexpr int kAxes = 8;
constexpr int64_t kElementWork = 16;
constexpr int64_t kSide = 16;  // of a square

struct Layout {
  explicit Layout(const Call& call)
      : base(call.ints[0]), extents(&call.ints[1]), strides(extents + kAxes), tables(strides + kAxes),
        start(tables[kAxes + 2]), step(tables[kAxes + 3]) {
    rows = 1;
    for (int axis = 0; axis + 1 < kAxes; ++axis) rows *= extents[axis];
  }
  const int32_t base, *extents, *strides, *tables;  // a table's first element; -1: elements lie in even steps
  const int64_t start, step;  // of the rows in the result
  int64_t rows;
};

Status check_take(const Call& call) {
  const Layout layout(call);
  const int32_t* d = layout.extents;
  Check check(call);
  check.sizes({d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7]});
  if (check.status()) return check.status();
  check.range("dst_step", layout.step, d[kAxes - 1], Check::kMaxSize);
  check.range("dst_start", layout.start, 0, layout.step - d[kAxes - 1]);
  check.holds("dst", 2, {d[0], d[1], d[2], d[3], d[4], d[5], d[6], layout.step});
  for (int axis = 0; axis < kAxes; ++axis) {
    check.range("a table", layout.tables[axis], -1, Check::kMaxSize);
    if (layout.tables[axis] >= 0) check.holds("table", 1, {int64_t{layout.tables[axis]} + d[axis]}, Type::i32);
  }
  return check.status();
}

constexpr int64_t kNowhere = INT64_MIN;

// What the elements of an axis add to a place in the source.
struct Axis {
  Axis(const Layout& layout, const int32_t* table, int axis)
      : extent(layout.extents[axis]), stride(layout.strides[axis]), entries(layout.tables[axis] < 0 ? nullptr : table + layout.tables[axis]) {}
  // kNowhere: there is nothing.
  int64_t operator[](int64_t i) const { return entries == nullptr ? i * stride : entries[i] >= 0 ? entries[i] * stride : kNowhere; }

  int64_t extent, stride;
  const int32_t* entries;
};

// What stands where there is nothing: of floats the float, of whole numbers two ints.
template <typename T>
T filling(const Call& call) {
  T value;
  if (call.buffers[0].type == Type::f32) {
    std::memcpy(&value, &call.floats[0], sizeof value);
  } else {
    const int32_t* words = &call.ints.back() - 3;
    value = static_cast<T>(uint64_t{static_cast<uint32_t>(words[1])} << 32 | static_cast<uint32_t>(words[0]));
  }
  return value;
}

// Of elements of a size.
template <typename T>
class Take {
 public:
  explicit Take(const Call& call)
      : layout_(call), src_(call.buffers[0].as<T>()), elements_(call.buffers[0].elements), dst_(call.buffers[2].as<T>()),
        value_(filling<T>(call)), length_(layout_.extents[kLast]), stride_(layout_.strides[kLast]), even_(layout_.tables[kLast] < 0),
        square_(even_ && layout_.tables[kLast - 1] < 0 && layout_.extents[kLast - 1] > 1) {
    const int32_t* table = call.buffers[1].as<int32_t>();
    for (int axis = 0; axis < kLast; ++axis)
      if (layout_.extents[axis] > 1 || layout_.tables[axis] >= 0) outer_.emplace_back(layout_, table, axis);
    if (even_) {
      least_ = std::min<int64_t>(0, (length_ - 1) * stride_), most_ = std::max<int64_t>(0, (length_ - 1) * stride_);
    } else {
      const Axis last(layout_, table, kLast);
      for (int64_t i = 0; i < length_; ++i) row_.push_back(last[i]);
      const auto ends = std::minmax_element(row_.begin(), row_.end());
      least_ = *ends.first, most_ = *ends.second;
    }
  }

  int64_t rows() const { return layout_.rows; }
  int64_t length() const { return length_; }

  void run(int64_t begin, int64_t end) const {
    int64_t at[kAxes] = {}, rest = begin;
    for (size_t axis = outer_.size(); axis-- > 0; rest /= outer_[axis].extent) at[axis] = rest % outer_[axis].extent;
    for (int64_t row = begin, rows; row < end; row += rows) {
      int64_t place = layout_.base;
      bool inside = true;
      for (size_t axis = 0; axis < outer_.size(); ++axis) {
        const int64_t more = outer_[axis][at[axis]];
        inside &= more != kNowhere;
        place += inside ? more : 0;
      }
      T* dst = dst_ + layout_.start + row * layout_.step;
      rows = square_ ? std::min({kSide, end - row, outer_.back().extent - at[outer_.size() - 1]}) : 1;
      if (rows == 1 || !inside || !copied_square(place, rows, dst)) {
        rows = 1;
        inside ? copy(place, dst) : void(std::fill_n(dst, length_, value_));
      }
      for (int64_t axis = static_cast<int64_t>(outer_.size()) - 1, more = rows; axis >= 0 && more > 0; --axis) {
        at[axis] += more, more = at[axis] == outer_[static_cast<size_t>(axis)].extent;
        if (more > 0) at[axis] = 0;
      }
    }
  }

 private:
  static constexpr int kLast = kAxes - 1;

  // What a table names beyond the source is as if it named nothing, so that no content of it can lead outside.
  void copy(int64_t place, T* dst) const {
    const bool whole = least_ != kNowhere && place + least_ >= 0 && place + most_ < elements_;
    if (!whole) {
      for (int64_t i = 0; i < length_; ++i) {
        const int64_t more = even_ ? i * stride_ : row_[static_cast<size_t>(i)];
        const bool there = more != kNowhere && place + more >= 0 && place + more < elements_;
        dst[i] = there ? src_[place + more] : value_;
      }
    } else if (!even_) {
      for (int64_t i = 0; i < length_; ++i) dst[i] = src_[place + row_[static_cast<size_t>(i)]];
    } else if (stride_ == 1) {
      std::copy_n(src_ + place, length_, dst);
    } else {
      for (int64_t i = 0; i < length_; ++i) dst[i] = src_[place + i * stride_];
    }
  }

  // Rows of an axis: in squares, so that a line of the cache is used whole, whichever way it lies. False where an element
  // lies beyond the source.
  bool copied_square(int64_t place, int64_t rows, T* dst) const {
    const int64_t step = layout_.strides[kLast - 1], last = place + (rows - 1) * step;
    if (std::min(place, last) + least_ < 0 || std::max(place, last) + most_ >= elements_) return false;
    for (int64_t r = 0; stride_ == 1 && r < rows; ++r) std::copy_n(src_ + place + r * step, length_, dst + r * layout_.step);
    for (int64_t first = 0; stride_ != 1 && first < length_; first += kSide)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t i = first; i < std::min(first + kSide, length_); ++i)
          dst[r * layout_.step + i] = src_[place + r * step + i * stride_];
    return true;
  }

  const Layout layout_;
  const T* const src_;
  const int64_t elements_;
  T* const dst_;
  const T value_;
  const int64_t length_, stride_;
  const bool even_;    // the elements of a row lie in even steps
  const bool square_;  // and so do the rows of an axis
  std::vector<Axis> outer_;  // of the axes before the last that tell something
  std::vector<int64_t> row_;
  int64_t least_ = 0, most_ = 0;  // of a row's places
};

void run_take(const Call& call, ThreadPool& pool) {
  with_size(call.buffers[0].type, [&](auto like) {
    const Take<decltype(like)> take(call);
    pool.shared(take.rows(), kElementWork * take.length(), [&](int64_t begin, int64_t end) { take.run(begin, end); });
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

template <typename T, typename Place>
void gather(const Call& call, ThreadPool& pool) {
  const int64_t outer = call.ints[0], axis = call.ints[1], inner = call.ints[2], indices = call.ints[3];
  const T* src = call.buffers[0].as<T>();
  const Place* places = call.buffers[1].as<Place>();
  pool.shared(outer * indices, kElementWork * inner, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t asked = places[row % indices];
      const int64_t place = std::clamp<int64_t>(asked < 0 ? asked + axis : asked, 0, axis - 1);
      std::copy_n(src + (row / indices * axis + place) * inner, inner, call.buffers[2].as<T>() + row * inner);
    }
  });
}

void run_gather(const Call& call, ThreadPool& pool) {
  with_size(call.buffers[0].type, [&](auto like) {
    using T = decltype(like);
    call.buffers[1].type == Type::i32 ? gather<T, int32_t>(call, pool) : gather<T, int64_t>(call, pool);
  });
}

Status check_put_rows(const Call& call) {
  const int64_t outer = call.ints[0], axis = call.ints[1], inner = call.ints[2], rows = call.ints[3];
  Check check(call);
  check.sizes({outer, axis, inner, rows});
  if (check.status()) return check.status();
  return check.range("rows", rows, 1, axis)
      .holds("src", 0, {outer, rows, inner})
      .holds("position", 1, {1})
      .holds("dst", 2, {outer, axis, inner})
      .status();
}

void run_put_rows(const Call& call, ThreadPool& pool) {
  const int64_t outer = call.ints[0], axis = call.ints[1], inner = call.ints[2], rows = call.ints[3];
  const View& place = call.buffers[1];
  const int64_t position = place.type == Type::i32 ? *place.as<int32_t>() : *place.as<int64_t>();
  const int64_t first = std::clamp<int64_t>(position, 0, axis - rows);
  with_size(call.buffers[0].type, [&](auto like) {
    using T = decltype(like);
    pool.shared(outer, kElementWork * rows * inner, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        std::copy_n(call.buffers[0].as<T>() + i * rows * inner, rows * inner, call.buffers[2].as<T>() + (i * axis + first) * inner);
    });
  });
}

}  // namespace

const Operation kTake{"take", 3, 5 + 3 * kAxes, 1, check_take, run_take, "e.e"};
const Operation kGatherValues{"gather_values", 3, 4, 0, check_gather, run_gather, "epe"};
const Operation kPutRows{"put_rows", 3, 4, 0, check_put_rows, run_put_rows, "epe"};

}  // namespace pocketfarm::cpu
