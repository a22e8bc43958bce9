// append and attend: attention over a cache of keys and values, of which some places are valid (kernels/ir/cache.py).
#include <algorithm>
#include <cmath>

#include "backends/cpu/elements/kernels.h"
#include "backends/cpu/gemm/gemm.h"
#include "operation.h"

namespace pocketfarm::cpu {
namespace {

constexpr int64_t kMostScores = 1 << 16;  // of a task, which stay in the second-level cache

// What both have of rows that are read where they lie: buffers from `first` on are ends, cosines, sines, scale.
struct Rows {
  int64_t images, heads, rows, capacity, depth, start, image, head, row, turned, by_place, places, batches, normed;
  const Call& call;
  size_t first;

  Rows(const Call& call, size_t first) : call(call), first(first) {
    const int32_t* i = call.ints.data();
    for (int64_t* each : {&images, &heads, &rows, &capacity, &depth, &start, &image, &head, &row, &turned, &by_place, &places, &batches, &normed})
      *each = *i++;
  }

  Status check(Check& check, const char* name, size_t source) const {
    check.sizes({images, heads, rows, capacity, depth});
    for (const int64_t number : {start, image, head, row}) check.range("a place or a step", number, 0, Check::kMaxSize);
    check.range("turned", turned, 0, depth).range("by_place", by_place, 0, 1).range("normed", normed, 0, 1).range("rows", rows, 1, capacity);
    check.range("places", places, 1, Check::kMaxSize).range("batches", batches, 1, Check::kMaxSize).that(turned % 2 == 0, "turned is odd");
    if (check.status()) return check.status();
    check.holds(name, source, {start + (images - 1) * image + (heads - 1) * head + (rows - 1) * row + depth}).holds("ends", first, {images});
    const int64_t angles = by_place ? places : batches * rows;
    if (turned) check.holds("cosines", first + 1, {angles, turned / 2}).holds("sines", first + 2, {angles, turned / 2});
    if (normed) check.holds("scale", first + 3, {depth});
    return check.status();
  }

  // The place of the first row.
  int64_t before(int64_t n) const {
    const View& ends = call.buffers[first];
    const int64_t last = ends.type == Type::i32 ? ends.as<int32_t>()[n] : ends.as<int64_t>()[n];
    return std::clamp<int64_t>(last, -capacity, 2 * capacity) + 1 - rows;
  }

  // Row r of a head, normalised and turned.
  void read(size_t source, int64_t n, int64_t h, int64_t r, int64_t place, float* dst) const {
    const float* src = call.buffers[source].as<float>() + start + n * image + h * head + r * row;
    if (normed) {
      float sum = 0;
      for (int64_t i = 0; i < depth; ++i) sum += src[i] * src[i];
      const float factor = 1 / std::sqrt(sum / static_cast<float>(depth) + call.floats[0]);
      const float* scale = call.buffers[first + 3].as<float>();
      for (int64_t i = 0; i < depth; ++i) dst[i] = src[i] * factor * scale[i];
    } else {
      std::copy_n(src, depth, dst);
    }
    const int64_t half = turned / 2, at = by_place ? std::clamp<int64_t>(place, 0, places - 1) : n % batches * rows + r;
    const float *cosines = call.buffers[first + 1].as<float>() + at * half, *sines = call.buffers[first + 2].as<float>() + at * half;
    for (int64_t i = 0; i < half; ++i) {
      const float left = dst[i], right = dst[half + i];
      dst[i] = left * cosines[i] - right * sines[i];
      dst[half + i] = right * cosines[i] + left * sines[i];
    }
  }
};

Status check_append(const Call& call) {
  const Rows a(call, 2);
  Check check(call);
  if (Status status = a.check(check, "src", 1)) return status;
  return check.holds("past", 0, {a.images, a.heads, a.capacity, a.depth}).holds("dst", 6, {a.images, a.heads, a.capacity, a.depth}).status();
}

void run_append(const Call& call, ThreadPool& pool) {
  const Rows a(call, 2);
  const float* past = call.buffers[0].as<float>();
  float* dst = call.buffers[6].as<float>();
  pool.shared(a.images * a.heads * a.capacity, a.depth, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t place = i % a.capacity, plane = i / a.capacity, n = plane / a.heads, r = place - a.before(n);
      if (r >= 0 && r < a.rows)
        a.read(1, n, plane % a.heads, r, place, dst + i * a.depth);
      else if (past != dst)
        std::copy_n(past + i * a.depth, a.depth, dst + i * a.depth);
    }
  });
}

struct Heads : Rows {
  int64_t shared, columns, window;
  explicit Heads(const Call& call) : Rows(call, 3), shared(call.ints[14]), columns(call.ints[15]), window(call.ints[16]) {}
};

Status check_attend(const Call& call) {
  const Heads a(call);
  Check check(call);
  check.sizes({a.shared, a.columns}).range("window", a.window, 0, Check::kMaxSize);
  if (check.status()) return check.status();
  if (Status status = a.check(check, "q", 0)) return status;
  return check.that(a.heads % a.shared == 0, "heads are no multiple of those of the cache")
      .holds("k", 1, {a.images, a.shared, a.capacity, a.depth})
      .holds("v", 2, {a.images, a.shared, a.capacity, a.columns})
      .holds("dst", 7, {a.images, a.rows, a.heads, a.columns})
      .status();
}

// Rows [first, first + count) of the heads that share one of the cache. `memory`: their q, scores and results, and a row.
void attend(const Call& call, const Heads& a, int64_t n, int64_t shared, int64_t first, int64_t count, float* memory, float* panels) {
  const int64_t group = a.heads / a.shared, m = group * count, before = a.before(n);
  const auto own = [&](int64_t r) { return std::clamp<int64_t>(before + r, 0, a.capacity - 1); };
  const auto begin = [&](int64_t r) { return a.window ? std::max<int64_t>(0, own(r) - a.window + 1) : 0; };
  const int64_t low = begin(first), keys = own(first + count - 1) + 1 - low, plane = (n * a.shared + shared) * a.capacity + low;
  float *q = memory, *scores = q + m * a.depth, *out = scores + m * a.capacity, *row = out + m * a.columns;
  for (int64_t i = 0; i < m; ++i) a.read(0, n, shared * group + i / count, first + i % count, before + first + i % count, q + i * a.depth);
  multiply_here({m, keys, a.depth, q, a.depth, scores, keys, pack_columns(call.buffers[1].as<float>() + plane * a.depth, a.depth), {}}, panels);
  const float scale = call.floats[1], cap = call.floats[2];
  for (int64_t i = 0; i < m; ++i) {
    const int64_t from = begin(first + i % count) - low, to = own(first + i % count) + 1 - low;
    float* scored = scores + i * keys;
    for (int64_t key = from; key < to; ++key) row[key] = cap > 0 ? cap * std::tanh(scale * scored[key] / cap) : scale * scored[key];
    std::fill(scored, scored + from, 0.0f);
    std::fill(scored + to, scored + keys, 0.0f);
    element_kernels().softmax(row + from, scored + from, to - from, 1, 1, nullptr);
  }
  multiply_here({m, a.columns, keys, scores, keys, out, a.columns, pack_rows(call.buffers[2].as<float>() + plane * a.columns, a.columns), {}}, panels);
  for (int64_t i = 0; i < m; ++i) {
    const int64_t at = (n * a.rows + first + i % count) * a.heads + shared * group + i / count;
    std::copy_n(out + i * a.columns, a.columns, call.buffers[7].as<float>() + at * a.columns);
  }
}

void run_attend(const Call& call, ThreadPool& pool) {
  const Heads a(call);
  const int64_t group = a.heads / a.shared, heads = a.images * a.shared, most = std::max<int64_t>(1, kMostScores / (group * a.capacity));
  const int64_t work = a.images * a.heads * a.rows * a.capacity * (a.depth + a.columns);
  const int64_t wanted = (pool.threads_for(work) + heads - 1) / heads;
  const int64_t parts = std::min(a.rows, std::max((a.rows + most - 1) / most, wanted));
  const int64_t m = (a.rows + parts - 1) / parts * group, floats = m * (a.depth + a.capacity + a.columns) + a.capacity;
  pool.each(heads * parts, [&](int64_t task, int thread) {
    const int64_t part = task % parts, head = task / parts, first = a.rows * part / parts;
    float* memory = pool.scratch(thread, static_cast<size_t>(floats + panel_floats()));
    attend(call, a, head / a.shared, head % a.shared, first, a.rows * (part + 1) / parts - first, memory, memory + floats);
  }, work);
}

}  // namespace

const Operation kAppend{"append", 7, 14, 1, check_append, run_append, "ffpffff"};
const Operation kAttend{"attend", 8, 17, 3, check_attend, run_attend, "fffpffff"};

}  // namespace pocketfarm::cpu
