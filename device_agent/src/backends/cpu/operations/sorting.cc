// sort_rows, suppress_rows: the best of each row in their order, and boxes that no better one overlaps.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <vector>

#include "operation.h"

namespace pocketfarm::cpu {
namespace {

constexpr int64_t kElementWork = 64;
constexpr int64_t kPairWork = 16;
constexpr int64_t kMostPlaces = int64_t{1} << 24;  // whole numbers that a float holds
constexpr size_t kTogether = 64;                   // boxes that one is held against before it is asked whether it goes
enum Number { kLowY, kLowX, kHighY, kHighX, kArea, kNumbers };

struct Element {
  uint32_t key;  // rises from the best to the worst
  uint32_t place;
};

uint32_t key_of(float value, bool largest) {
  value = largest ? -value : value;
  if (value != value) value = std::numeric_limits<float>::infinity();
  value += 0.0f;  // the zeros are equal
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

// Stable, by the keys' bytes from the last on; a byte that is the same everywhere costs a count.
void sort(std::vector<Element>& elements, std::vector<Element>& other) {
  other.resize(elements.size());
  for (int shift = 0; shift < 32; shift += 8) {
    std::array<size_t, 257> starts{};
    for (const Element& each : elements) ++starts[(each.key >> shift & 255) + 1];
    if (std::find(starts.begin(), starts.end(), elements.size()) != starts.end()) continue;
    for (size_t byte = 1; byte < starts.size(); ++byte) starts[byte] += starts[byte - 1];
    for (const Element& each : elements) other[starts[each.key >> shift & 255]++] = each;
    elements.swap(other);
  }
}

Status check_sort(const Call& call) {
  const int64_t rows = call.ints[0], n = call.ints[1], k = call.ints[2];
  Check check(call);
  check.sizes({rows, n}).range("n", n, 1, kMostPlaces).range("k", k, 1, n).range("largest", call.ints[3], 0, 1);
  if (check.status()) return check.status();
  return check.holds("src", 0, {rows, n}).holds("values", 1, {rows, k}).holds("places", 2, {rows, k}).status();
}

void run_sort(const Call& call, ThreadPool& pool) {
  const int64_t rows = call.ints[0], n = call.ints[1], k = call.ints[2];
  const bool largest = call.ints[3] != 0;
  pool.shared(rows, kElementWork * n, [&](int64_t begin, int64_t end) {
    std::vector<Element> elements(static_cast<size_t>(n)), other;
    for (int64_t row = begin; row < end; ++row) {
      const float* src = call.buffers[0].data + row * n;
      for (int64_t i = 0; i < n; ++i) elements[static_cast<size_t>(i)] = {key_of(src[i], largest), static_cast<uint32_t>(i)};
      sort(elements, other);
      for (int64_t i = 0; i < k; ++i) {
        const uint32_t place = elements[static_cast<size_t>(i)].place;
        call.buffers[1].data[row * k + i] = src[place];
        call.buffers[2].data[row * k + i] = static_cast<float>(place);
      }
    }
  });
}

// Boxes that a row has taken, number by number.
struct Taken {
  std::array<std::vector<float>, kNumbers> numbers;
  size_t count = 0;

  void add(const float* box) {
    for (size_t i = 0; i < kNumbers; ++i) numbers[i].push_back(box[i]);
    ++count;
  }

  bool overlap(const float* box, float most) const {
    for (size_t first = 0; first < count; first += kTogether)
      if (overlap(box, most, first, std::min(count, first + kTogether))) return true;
    return false;
  }

 private:
  static float larger(float a, float b) { return a > b || a != a ? a : b; }
  static float smaller(float a, float b) { return a < b || a != a ? a : b; }

  bool overlap(const float* box, float most, size_t first, size_t last) const {
    const float *low_y = numbers[kLowY].data(), *low_x = numbers[kLowX].data(), *high_y = numbers[kHighY].data(),
                *high_x = numbers[kHighX].data(), *area = numbers[kArea].data();
    int over = 0;
    for (size_t i = first; i < last; ++i) {
      const float tall = larger(smaller(box[kHighY], high_y[i]) - larger(box[kLowY], low_y[i]), 0.0f);
      const float wide = larger(smaller(box[kHighX], high_x[i]) - larger(box[kLowX], low_x[i]), 0.0f);
      const float common = tall * wide;
      over |= common / larger(box[kArea] + area[i] - common, std::numeric_limits<float>::min()) > most;
    }
    return over != 0;
  }
};

int64_t inside(float number, int64_t last) {
  return number > 0 ? static_cast<int64_t>(std::min(number, static_cast<float>(last))) : 0;
}

Status check_suppress(const Call& call) {
  const int64_t batch = call.ints[0], n = call.ints[1], rows = call.ints[2], length = call.ints[3], rounds = call.ints[4];
  Check check(call);
  check.sizes({batch, n, rows, length, rounds}).range("n", n, 1, kMostPlaces).range("length", length, 1, kMostPlaces);
  if (check.status()) return check.status();
  return check.that(rows % batch == 0, "rows of suppress_rows are no multiple of its batch")
      .holds("boxes", 0, {batch, n, kNumbers})
      .holds("order", 1, {rows, length})
      .holds("valid", 2, {rows})
      .holds("dst", 3, {rows, rounds})
      .status();
}

void run_suppress(const Call& call, ThreadPool& pool) {
  const int64_t batch = call.ints[0], n = call.ints[1], rows = call.ints[2], length = call.ints[3], rounds = call.ints[4];
  pool.shared(rows, kPairWork * length * std::min(length, rounds), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float *boxes = call.buffers[0].data + row / (rows / batch) * n * kNumbers, *order = call.buffers[1].data + row * length;
      float* dst = call.buffers[3].data + row * rounds;
      const int64_t valid = inside(call.buffers[2].data[row], length);
      Taken taken;
      int64_t found = 0;
      for (int64_t i = 0; i < valid && found < rounds; ++i) {
        const int64_t place = inside(order[i], n - 1);
        const float* box = boxes + place * kNumbers;
        if (taken.overlap(box, call.floats[0])) continue;
        taken.add(box);
        dst[found++] = static_cast<float>(place);
      }
      std::fill(dst + found, dst + rounds, -1.0f);
    }
  });
}

}  // namespace

const Operation kSortRows{"sort_rows", 3, 4, 0, check_sort, run_sort};
const Operation kSuppressRows{"suppress_rows", 4, 5, 1, check_suppress, run_suppress};

}  // namespace pocketfarm::cpu
