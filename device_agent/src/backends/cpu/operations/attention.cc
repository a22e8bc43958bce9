// attention: softmax(scale * q k) v of each head, whose rows are read and written where they lie.
#include <algorithm>

#include "backends/cpu/elements/kernels.h"
#include "backends/cpu/gemm/gemm.h"
#include "operation.h"

namespace pocketfarm::cpu {
namespace {

constexpr int64_t kMostScores = 1 << 16;  // of a task, which stay in the second-level cache

// Where a tensor's rows are: the first of all, and steps to the next image, head and row.
struct Place {
  int64_t start, image, head, row;

  explicit Place(const int32_t* i) : start(i[0]), image(i[1]), head(i[2]), row(i[3]) {}
  int64_t at(int64_t n, int64_t h, int64_t r) const { return start + n * image + h * head + r * row; }
};

struct Attention {
  int64_t images, heads, rows, keys, depth, columns;
  Place q, k, v, out;

  explicit Attention(const Call& call) : Attention(call.ints.data()) {}
  explicit Attention(const int32_t* i)
      : images(i[0]), heads(i[1]), rows(i[2]), keys(i[3]), depth(i[4]), columns(i[5]), q(i + 6), k(i + 10), v(i + 14), out(i + 18) {}
};

Status check(const Call& call) {
  const Attention a(call);
  Check check(call);
  check.sizes({a.images, a.heads, a.rows, a.keys, a.depth, a.columns});
  for (const Place& place : {a.q, a.k, a.v, a.out})
    for (const int64_t number : {place.start, place.image, place.head, place.row})
      check.range("a place or a step", number, 0, Check::kMaxSize);
  if (check.status()) return check.status();
  const auto end = [&](const Place& place, int64_t rows, int64_t width) {  // each term is below 2^56
    return place.at(a.images - 1, a.heads - 1, rows - 1) + width;
  };
  return check.holds("q", 0, {end(a.q, a.rows, a.depth)})
      .holds("k", 1, {end(a.k, a.keys, a.depth)})
      .holds("v", 2, {end(a.v, a.keys, a.columns)})
      .holds("dst", 3, {end(a.out, a.rows, a.columns)})
      .status();
}

// Rows [first, first + count) of a head. Of memory: `scores` count * keys floats, `row` keys.
void attend(const Call& call, const Attention& a, int64_t image, int64_t head, int64_t first, int64_t count, float* scores,
            float* row, float* panels) {
  const auto data = [&](size_t buffer, const Place& place, int64_t at) {
    return call.buffers[buffer].as<float>() + place.at(image, head, at);
  };
  multiply_here({count, a.keys, a.depth, data(0, a.q, first), a.q.row, scores, a.keys, pack_columns(data(1, a.k, 0), a.k.row), {}},
                panels);
  const ElementKernels& kernels = element_kernels();
  const float scale = call.floats[0];
  for (int64_t i = 0; i < count; ++i) {
    float* own = scores + i * a.keys;
    for (int64_t key = 0; key < a.keys; ++key) row[key] = scale * own[key];
    kernels.softmax(row, own, a.keys, 1, 1, nullptr);
  }
  multiply_here({count, a.columns, a.keys, scores, a.keys, data(3, a.out, first), a.out.row, pack_rows(data(2, a.v, 0), a.v.row), {}},
                panels);
}

void run(const Call& call, ThreadPool& pool) {
  const Attention a(call);
  const int64_t heads = a.images * a.heads, most = std::max<int64_t>(1, kMostScores / a.keys);
  const int64_t work = heads * a.rows * a.keys * (a.depth + a.columns);
  const int64_t wanted = (pool.threads_for(work) + heads - 1) / heads;  // parts of a head, which pack its keys each
  const int64_t parts = std::min(a.rows, std::max((a.rows + most - 1) / most, wanted));
  const int64_t largest = (a.rows + parts - 1) / parts * a.keys;
  pool.each(heads * parts, [&](int64_t task, int thread) {
    const int64_t part = task % parts, head = task / parts, first = a.rows * part / parts;
    float* scores = pool.scratch(thread, static_cast<size_t>(largest + a.keys + panel_floats()));
    attend(call, a, head / a.heads, head % a.heads, first, a.rows * (part + 1) / parts - first, scores, scores + largest,
           scores + largest + a.keys);
  }, work);
}

}  // namespace

const Operation kAttention{"attention", 4, 22, 1, check, run};

}  // namespace pocketfarm::cpu
