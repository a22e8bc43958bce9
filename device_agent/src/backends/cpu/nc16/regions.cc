// roi_align_nc16: boxes of pictures in blocks of sixteen channels, brought to one size; the result is row-major.
#include <algorithm>
#include <vector>

#include "nc16.h"
#include "kernels.h"
#include "backends/cpu/operations/operation.h"

namespace pocketfarm::cpu {
namespace {

struct Align {
  const float *src, *boxes, *pictures, *valid;
  float* dst;
  int64_t n, c, h, w, rows, oh, ow, points;
  bool half, largest;
  float scale;

  explicit Align(const Call& call) {
    src = call.buffers[0].as<float>(), boxes = call.buffers[1].as<float>(), pictures = call.buffers[2].as<float>();
    valid = call.buffers[3].as<float>(), dst = call.buffers[4].as<float>();
    const int32_t* i = call.ints.data();
    for (int64_t* field : {&n, &c, &h, &w, &rows, &oh, &ow, &points}) *field = *i++;
    half = i[0] != 0, largest = i[1] != 0, scale = call.floats[0];
  }
  int64_t taps() const { return 4 * points * points; }  // of an element
};

Status check(const Call& call) {
  const Align v(call);
  Check check(call);
  check.sizes({v.n, v.c, v.h, v.w, v.rows, v.oh, v.ow, v.points}).range("half", call.ints[8], 0, 1);
  check.range("largest", call.ints[9], 0, 1).range("points", v.points, 1, 1024);
  if (check.status()) return check.status();
  return check.holds("src", 0, {v.n, blocks_of(v.c), kBlock, v.h, v.w})
      .holds("boxes", 1, {v.rows, 4})
      .holds("pictures", 2, {v.rows})
      .holds("valid", 3, {1})
      .holds("dst", 4, {v.rows, v.c, v.oh, v.ow})
      .status();
}

// A point along an axis: the pixels before and behind it, and their shares.
struct Point {
  int64_t pixel[2];
  float share[2];
};

void points_along(const Align& v, const float* ends, int64_t extent, int64_t parts, std::vector<Point>& to) {
  const float shift = v.half ? 0.5f : 0.0f, start = ends[0] * v.scale - shift;
  const float given = ends[2] * v.scale - shift - start, length = v.half || given > 1 ? given : 1.0f;
  const int64_t count = parts * v.points;
  to.resize(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    float at = start + length * ((static_cast<float>(i) + 0.5f) / static_cast<float>(count));
    const bool inside = at >= -1 && at <= static_cast<float>(extent);
    at = inside ? std::clamp(at, 0.0f, static_cast<float>(extent - 1)) : 0.0f;
    const auto before = static_cast<int64_t>(at);
    const float behind = inside ? at - static_cast<float>(before) : 0.0f;
    to[static_cast<size_t>(i)] = {{before, std::min(before + 1, extent - 1)}, {(inside ? 1.0f : 0.0f) - behind, behind}};
  }
}

// What a thread needs for one row of elements of a box.
class Row {
 public:
  explicit Row(const Align& v)
      : v_(v), places_(static_cast<size_t>(v.ow * v.taps())), shares_(places_.size()),
        sums_(static_cast<size_t>(v.ow * kBlock)) {}

  void box(int64_t row) {
    const float asked = v_.pictures[row];
    const int64_t picture = asked > 0 ? static_cast<int64_t>(std::min(asked, static_cast<float>(v_.n - 1))) : 0;
    points_along(v_, v_.boxes + 4 * row, v_.w, v_.ow, across_);
    points_along(v_, v_.boxes + 4 * row + 1, v_.h, v_.oh, down_);
    const int64_t blocks = blocks_of(v_.c), plane = v_.h * v_.w * kBlock;
    for (int64_t oy = 0; oy < v_.oh; ++oy) {
      set_taps(oy);
      for (int64_t block = 0; block < blocks; ++block) {
        nc16_kernels().mixed(v_.src + (picture * blocks + block) * plane, places_.data(), shares_.data(), v_.ow, v_.taps(),
                             v_.largest, sums_.data());
        store(row, block, oy);
      }
    }
  }

 private:
  void set_taps(int64_t oy) {
    const float part = v_.largest ? 1.0f : 1.0f / static_cast<float>(v_.points * v_.points);
    size_t tap = 0;
    for (int64_t ox = 0; ox < v_.ow; ++ox)
      for (int64_t py = 0; py < v_.points; ++py)
        for (int64_t px = 0; px < v_.points; ++px) {
          const Point& y = down_[static_cast<size_t>(oy * v_.points + py)];
          const Point& x = across_[static_cast<size_t>(ox * v_.points + px)];
          for (int corner = 0; corner < 4; ++corner, ++tap) {
            places_[tap] = (y.pixel[corner / 2] * v_.w + x.pixel[corner % 2]) * kBlock;
            shares_[tap] = y.share[corner / 2] * x.share[corner % 2] * part;
          }
        }
  }

  void store(int64_t row, int64_t block, int64_t oy) {
    const int64_t lanes = std::min(kBlock, v_.c - block * kBlock);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      float* to = v_.dst + ((row * v_.c + block * kBlock + lane) * v_.oh + oy) * v_.ow;
      for (int64_t ox = 0; ox < v_.ow; ++ox) to[ox] = sums_[static_cast<size_t>(ox * kBlock + lane)];
    }
  }

  const Align& v_;
  std::vector<int64_t> places_;
  std::vector<float> shares_, sums_;
  std::vector<Point> across_, down_;
};

void run(const Call& call, ThreadPool& pool) {
  const Align v(call);
  const int64_t elements = v.c * v.oh * v.ow;
  pool.shared(v.rows, elements * v.taps(), [&](int64_t begin, int64_t end) {
    Row row(v);
    for (int64_t i = begin; i < end; ++i) {
      if (static_cast<float>(i) < v.valid[0])
        row.box(i);
      else
        std::fill_n(v.dst + i * elements, elements, 0.0f);
    }
  });
}

}  // namespace

const Operation kRoiAlignNc16{"roi_align_nc16", 5, 10, 1, check, run};

}  // namespace pocketfarm::cpu
