// Convolution on blocks of sixteen channels: an implicit matrix product whose tiles stay in registers; depthwise directly.
#include <algorithm>
#include <vector>

#include "nc16.h"
#include "gather.h"
#include "kernels.h"
#include "output.h"
#include "backends/cpu/operations/operation.h"

namespace pocketfarm::cpu {
namespace {

// Of what a task reads again for all outputs: it stays in the second-level cache, a quarter of it where it is gathered before.
constexpr int64_t kTaskFloats = 131072, kPanelFloats = kTaskFloats / 4;
constexpr int64_t kTasksPerThread = 4;   // for balance
constexpr int64_t kDepthwiseWork = 3;    // times as long as one of a product takes a multiply-add

struct Conv {
  const float *src, *weight;
  int64_t n, c, k, groups;
  Window window;
  bool src_plain;
  Output output;

  explicit Conv(const Call& call) {
    src = call.buffers[0].as<float>(), weight = call.buffers[1].as<float>();
    const int32_t* i = call.ints.data();
    n = i[0], c = i[1], k = i[4], groups = i[15], src_plain = i[16] != 0;
    window = {i[2], i[3], i[5], i[6], i[7], i[8], i[9], i[10], i[11], i[12], i[13], i[14]};
    output = Output(call, 2, 17, k, window.oh * window.ow);
  }
  int64_t taps() const { return window.kh * window.kw; }
  int64_t pixels() const { return window.oh * window.ow; }
  int64_t group_blocks() const { return blocks_of(k / groups); }
  int64_t depth() const { return c / groups * taps(); }
  const float* group_source(int64_t image, int64_t group) const {
    const int64_t channels = src_plain ? c : blocks_of(c) * kBlock;
    return src + (image * channels + group * (c / groups)) * window.h * window.w;
  }
  bool pointwise() const {
    const Window& w = window;
    return !src_plain && taps() == 1 && w.sh == 1 && w.sw == 1 && w.pad_t == 0 && w.pad_l == 0 && w.oh == w.h && w.ow == w.w;
  }
};

Check& check_window(Check& check, const Window& w) {
  return check.sizes({w.h, w.w, w.oh, w.ow, w.kh, w.kw, w.sh, w.sw, w.dh, w.dw})
      .range("pad_t", w.pad_t, 0, Check::kMaxSize)
      .range("pad_l", w.pad_l, 0, Check::kMaxSize);
}

Status check(const Call& call) {
  const Conv v(call);
  const Window& w = v.window;
  Check check(call);
  check_window(check.sizes({v.n, v.c, v.k, v.groups}), w);
  if (check.status()) return check.status();
  check.that(v.c % v.groups == 0 && v.k % v.groups == 0, "groups must divide c and k");
  if (check.status()) return check.status();
  const int64_t per_group = v.c / v.groups, outputs = v.k / v.groups;
  check.that(v.groups == 1 || (per_group % kBlock == 0 && outputs % kBlock == 0 && !v.src_plain),
             "a group must have whole blocks of 16 channels");
  if (v.src_plain) check.holds("src", 0, {v.n, v.c, w.h, w.w});
  if (!v.src_plain) check.holds("src", 0, {v.n, blocks_of(v.c), kBlock, w.h, w.w});
  check.holds("weight", 1, {blocks_of(v.k), per_group, w.kh, w.kw, kBlock});
  return v.output.check(check, call, 2, v.n, w.oh, w.ow);
}

// The tiles [first_tile, last_tile) of one image and group, times the blocks [first_block, last_block) of outputs.
struct Task {
  int64_t image, group, first_tile, last_tile, first_block, last_block;
};

// What pixels side by side read: in place, those of several tiles, or a tile's gathered in a panel, by some rows of the window.
struct Values {
  const float* data;
  bool gathered;
  int64_t first_row, rows, first_pixel, pixels;
};

class Product2d {
 public:
  explicit Product2d(const Conv& conv) : v_(conv), kernels_(nc16_kernels()) {
    // The tiles of a row-major source keep to rows, as what they read then lies at even distances.
    const int64_t line = v_.src_plain ? v_.window.ow : v_.pixels();
    const int64_t least = (line + kernels_.pixels - 1) / kernels_.pixels;
    width_ = (line + least - 1) / least;
    across_ = (line + width_ - 1) / width_;
    line_ = line;
    tiles_ = v_.pixels() / line * across_;
    if (v_.src_plain) set_offsets();
  }

  void run(ThreadPool& pool) {
    const int64_t blocks = v_.group_blocks(), pairs = (blocks + kernels_.blocks - 1) / kernels_.blocks;
    const int64_t panel = panel_floats();
    const int threads = pool.threads_for(v_.n * v_.k * v_.depth() * v_.pixels());
    const int64_t wanted = threads > 1 ? kTasksPerThread * threads : 1;
    const int64_t most = std::max<int64_t>(1, (v_.pointwise() ? kTaskFloats : kPanelFloats) / panel);  // tiles of a task
    // What is larger is shared out; the other is read by every task.
    const bool by_weights = blocks * kBlock * v_.depth() > tiles_ * panel && tiles_ < 2 * wanted;
    const int64_t least = std::max((tiles_ + most - 1) / most, by_weights ? 1 : wanted);
    const int64_t across = std::min(tiles_, least == 1 ? 1 : (least + threads - 1) / threads * threads);  // as many for each thread
    // Tasks that lie below each other gather the same values, each for itself.
    const int64_t below = v_.pointwise() ? wanted : threads;
    const int64_t down = std::min(pairs, by_weights ? std::max<int64_t>(1, below / across) : 1);
    pool.each(v_.n * v_.groups * across * down, [&](int64_t i, int thread) {
      const int64_t column = i % across, row = i / across % down, plane = i / across / down;
      multiply({plane / v_.groups, plane % v_.groups, tiles_ * column / across, tiles_ * (column + 1) / across,
                kernels_.blocks * (pairs * row / down),
                std::min(blocks, kernels_.blocks * (pairs * (row + 1) / down))},
               pool, thread);
    }, threads > 1 ? ThreadPool::kLeastWork : 0);
  }

 private:
  int64_t panel_floats() const {
    return (v_.src_plain ? v_.depth() : blocks_of(v_.c / v_.groups) * v_.taps() * kBlock) * width_;
  }
  int64_t first_pixel(int64_t tile) const { return tile / across_ * line_ + tile % across_ * width_; }
  int64_t tile_pixels(int64_t tile) const { return std::min(width_, line_ - tile % across_ * width_); }

  // From the first value of a pixel to the others, in the source and in a panel.
  void set_offsets() {
    const Window& w = v_.window;
    for (int64_t c = 0; c < v_.c; ++c)
      for (int64_t ky = 0; ky < w.kh; ++ky)
        for (int64_t kx = 0; kx < w.kw; ++kx) {
          in_panel_.push_back(static_cast<int64_t>(in_panel_.size()) * width_);
          in_source_.push_back((c * w.h + ky * w.dh) * w.w + kx * w.dw);
        }
  }

  // Whether the kernels can read what a tile needs where it lies.
  bool in_place(int64_t tile) const {
    const Window& w = v_.window;
    if (!v_.src_plain) return v_.pointwise();
    if (w.sw != 1 && w.sw != 2 && w.sw != 4) return false;
    const int64_t pixel = first_pixel(tile), iy = pixel / w.ow * w.sh - w.pad_t, ix = pixel % w.ow * w.sw - w.pad_l;
    return iy >= 0 && ix >= 0 && iy + (w.kh - 1) * w.dh < w.h &&
           ix + (tile_pixels(tile) - 1) * w.sw + (w.kw - 1) * w.dw < w.w;
  }
  // Narrows a window to the rows of it with which the pixels of a tile read more than pads; returns the first.
  int64_t leave_out_rows(int64_t tile, Window& w) const {
    const int64_t first = first_pixel(tile) / w.ow, last = (first_pixel(tile) + tile_pixels(tile) - 1) / w.ow;
    const int64_t lowest = last * w.sh - w.pad_t, highest = first * w.sh - w.pad_t;  // rows of the source
    const int64_t begin = lowest >= 0 ? 0 : (w.dh - 1 - lowest) / w.dh;
    const int64_t end = highest >= w.h ? 0 : (w.h - 1 - highest) / w.dh + 1;
    const int64_t from = std::min(begin, w.kh), to = std::clamp(end, from, w.kh);
    w.pad_t -= from * w.dh, w.kh = to - from;
    return from;
  }
  const float* place(const float* src, int64_t tile) const {
    const Window& w = v_.window;
    const int64_t pixel = first_pixel(tile);
    if (!v_.src_plain) return src + pixel * kBlock;
    return src + (pixel / w.ow * w.sh - w.pad_t) * w.w + pixel % w.ow * w.sw - w.pad_l;
  }

  void multiply(const Task& task, ThreadPool& pool, int thread) const {
    const float* src = v_.group_source(task.image, task.group);
    const int64_t tiles = task.last_tile - task.first_tile, size = panel_floats();
    int64_t gathered = 0;
    for (int64_t tile = task.first_tile; tile < task.last_tile; ++tile) gathered += in_place(tile) ? 0 : 1;
    float* panel = gathered > 0 ? pool.scratch(thread, static_cast<size_t>(size * gathered)) : nullptr;
    std::vector<Values> values;
    values.reserve(static_cast<size_t>(tiles));
    for (int64_t tile = task.first_tile, next; tile < task.last_tile; tile = next) {
      next = tile + 1;
      if (in_place(tile)) {
        while (next < task.last_tile && next % across_ != 0 && in_place(next)) ++next;
        const int64_t pixels = first_pixel(next - 1) + tile_pixels(next - 1) - first_pixel(tile);
        values.push_back({place(src, tile), false, 0, v_.window.kh, first_pixel(tile), pixels});
        continue;
      }
      Window read = v_.window;
      int64_t first_row = 0;
      if (v_.src_plain) {
        gather_planes(read, src, v_.c, first_pixel(tile), tile_pixels(tile), width_, panel);
      } else {
        first_row = leave_out_rows(tile, read);
        gather_blocks(read, src, blocks_of(v_.c / v_.groups), first_pixel(tile), tile_pixels(tile), panel);
      }
      values.push_back({panel, true, first_row, read.kh, first_pixel(tile), tile_pixels(tile)});
      panel += size;
    }
    for (int64_t block = task.first_block; block < task.last_block; block += kernels_.blocks)
      for (const Values& each : values) multiply_pixels(task, block, each, &each == values.data());
  }

  void multiply_pixels(const Task& task, int64_t block, const Values& values, bool first_of_block) const {
    const int64_t group_inputs = v_.c / v_.groups, first = task.group * v_.group_blocks() + block;
    Product product{};
    product.values = values.data;
    product.pixels = static_cast<int>(values.pixels);
    if (v_.src_plain) {
      product.step = values.gathered ? 1 : static_cast<int>(v_.window.sw);
      product.offsets = values.gathered ? in_panel_.data() : in_source_.data();
      product.entries = v_.depth();
    } else {
      product.step = kBlock;
      product.entry_stride = (values.gathered ? values.pixels : v_.pixels()) * kBlock;
      product.run = values.rows * v_.window.kw, product.before = values.first_row * v_.window.kw;
      product.behind = v_.taps() - product.before - product.run;
      product.entries = group_inputs / kBlock * product.run;
      product.tail_lanes = static_cast<int>(group_inputs % kBlock);
      product.tail_entries = product.tail_lanes > 0 ? product.run : 0;
    }
    product.weight = v_.weight + first * v_.depth() * kBlock;
    product.weight_stride = v_.depth() * kBlock;
    product.ahead = first_of_block ? kernels_.blocks * product.weight_stride : 0;
    product.blocks = static_cast<int>(std::min<int64_t>(kernels_.blocks, task.last_block - block));
    product.out = v_.output.at(task.image, first) + values.first_pixel * kBlock;
    product.out_stride = v_.pixels() * kBlock;
    product.epilogue = v_.output.epilogue(task.image, first, values.first_pixel);
    kernels_.product(product);
    for (int b = 0; b < product.blocks; ++b)
      v_.output.finish(product.out + b * product.out_stride, values.pixels * kBlock);
  }

  const Conv& v_;
  const Nc16Kernels& kernels_;
  int64_t width_, across_, line_, tiles_;  // pixels of a tile, tiles and pixels of a line, tiles of an image
  std::vector<int64_t> in_panel_, in_source_;
};

void run(const Call& call, ThreadPool& pool) {
  const Conv v(call);
  Product2d(v).run(pool);
}

// Groups that lie in a block: of 2, 4 or 8 inputs and as many outputs, or of one channel and `times` outputs.
struct Depthwise {
  const float *src, *weight;
  int64_t n, c, width, times;  // c: of outputs
  Window window;
  Output output;

  explicit Depthwise(const Call& call) {
    src = call.buffers[0].as<float>(), weight = call.buffers[1].as<float>();
    const int32_t* i = call.ints.data();
    n = i[0], c = i[1], width = i[14], times = i[15];
    window = {i[2], i[3], i[4], i[5], i[6], i[7], i[8], i[9], i[10], i[11], i[12], i[13]};
    output = Output(call, 2, 16, c, window.oh * window.ow);
  }
  int64_t blocks() const { return blocks_of(c); }
  int64_t taps() const { return window.kh * window.kw * width; }
  int64_t row_floats() const { return window.w * width * kBlock; }
  // The block that block `plane` of the results reads.
  const float* source(int64_t plane) const {
    const int64_t image = plane / blocks(), block = plane % blocks();
    return src + (image * blocks_of(c / times) + block / times) * window.h * window.w * kBlock;
  }

  // Rows [first, last) of one block of an image, whose source rows `values` are those that `seen` has.
  void rows(const Window& seen, const float* values, int64_t plane, int64_t first, int64_t last) const {
    const int64_t image = plane / blocks(), block = plane % blocks();
    float* out = output.at(image, block) + first * window.ow * kBlock;
    nc16_kernels().depthwise_rows(seen, values, weight + block * taps() * kBlock, first, last, out,
                                  output.epilogue(image, block, first * window.ow));
    output.finish(out, (last - first) * window.ow * kBlock);
  }
};

Status check_depthwise(const Call& call) {
  const Depthwise v(call);
  const Window& w = v.window;
  Check check(call);
  check_window(check.sizes({v.n, v.c}), w)
      .that(v.width == 1 || v.width == 2 || v.width == 4 || v.width == 8, "a group has 1, 2, 4 or 8 channels")
      .that(v.width == 1 || (w.dw == 1 && v.c % v.width == 0), "groups are whole and not dilated along rows")
      .that(v.times == 1 || v.times == 2 || v.times == 4 || v.times == 8 || v.times == 16, "a channel has 1, 2, 4, 8 or 16 filters")
      .that(v.times == 1 || (v.width == 1 && v.c % v.times == 0), "only groups of one channel have several filters");
  if (check.status()) return check.status();
  check.holds("src", 0, {v.n, blocks_of(v.c / v.times), kBlock, w.h, w.w})
      .holds("weight", 1, {blocks_of(v.c), w.kh, w.kw, v.width, kBlock});
  return v.output.check(check, call, 2, v.n, w.oh, w.ow);
}

// The rows [first, last) of one block: each source pixel is spread to as many as a group has channels, of which a
// window as many times as wide takes every one with filters of its own; or its channels are repeated.
void run_band(const Depthwise& v, int64_t plane, int64_t first, int64_t last, float* scratch) {
  Window seen = v.window;
  const int64_t top = std::max<int64_t>(0, first * seen.sh - seen.pad_t);
  const int64_t bottom = std::min(seen.h, (last - 1) * seen.sh - seen.pad_t + (seen.kh - 1) * seen.dh + 1);
  if (const float* from = v.source(plane) + top * seen.w * kBlock; bottom > top && v.times > 1)
    nc16_kernels().repeat(from, (bottom - top) * seen.w, v.times, plane % v.blocks() % v.times, scratch);
  else if (bottom > top)
    nc16_kernels().spread(from, (bottom - top) * seen.w, v.width, scratch);
  seen.h = std::max<int64_t>(0, bottom - top), seen.pad_t += top;
  seen.w *= v.width, seen.kw *= v.width, seen.sw *= v.width, seen.pad_l *= v.width;
  v.rows(seen, scratch, plane, first, last);
}

void run_depthwise(const Call& call, ThreadPool& pool) {
  const Depthwise v(call);
  const Window& w = v.window;
  const int64_t planes = v.n * v.blocks(), work = kDepthwiseWork * w.ow * v.taps() * kBlock;
  if (v.width == 1 && v.times == 1) {
    pool.shared(planes * w.oh, work, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin, next; i < end; i = next) {
        next = std::min(end, (i / w.oh + 1) * w.oh);
        v.rows(w, v.source(i / w.oh), i / w.oh, i % w.oh, i % w.oh + next - i);
      }
    });
    return;
  }
  const int64_t seen = (w.kh - 1) * w.dh + 1;  // source rows of one row
  const int64_t most = std::max<int64_t>(1, (kPanelFloats / v.row_floats() - seen) / w.sh + 1);
  const int64_t bands = (w.oh + most - 1) / most;
  const size_t floats = static_cast<size_t>(std::min(w.h, ((w.oh + bands - 1) / bands - 1) * w.sh + seen) * v.row_floats());
  pool.each(planes * bands, [&](int64_t i, int thread) {
    const int64_t band = i % bands;
    run_band(v, i / bands, w.oh * band / bands, w.oh * (band + 1) / bands, pool.scratch(thread, floats));
  }, planes * w.oh * work);
}

}  // namespace

const Operation kConv2dNc16{"conv2d_nc16", 5, 22, 2, check, run};
const Operation kDepthwiseNc16{"depthwise_nc16", 5, 21, 2, check_depthwise, run_depthwise};

}  // namespace pocketfarm::cpu
