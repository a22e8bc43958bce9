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
constexpr size_t kTogether = 64;                   // boxes that one is held against before it is asked whether it goes
enum Number { kLowY, kLowX, kHighY, kHighX, kArea, kNumbers };

template <typename Key>
struct Element {
  Key key;  // rises from the best to the worst
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

template <typename T, typename Key = std::make_unsigned_t<T>>
Key key_of(T value, bool largest) {
  const Key key = static_cast<Key>(value) ^ Key{1} << (8 * sizeof(T) - 1);
  return largest ? ~key : key;
}

// Stable, by the keys' bytes from the last on; a byte that is the same everywhere costs a count.
template <typename Key>
void sort(std::vector<Element<Key>>& elements, std::vector<Element<Key>>& other) {
  other.resize(elements.size());
  for (int shift = 0; shift < static_cast<int>(8 * sizeof(Key)); shift += 8) {
    std::array<size_t, 257> starts{};
    for (const Element<Key>& each : elements) ++starts[(each.key >> shift & 255) + 1];
    if (std::find(starts.begin(), starts.end(), elements.size()) != starts.end()) continue;
    for (size_t byte = 1; byte < starts.size(); ++byte) starts[byte] += starts[byte - 1];
    for (const Element<Key>& each : elements) other[starts[each.key >> shift & 255]++] = each;
    elements.swap(other);
  }
}

Status check_sort(const Call& call) {
  const int64_t rows = call.ints[0], n = call.ints[1], k = call.ints[2];
  Check check(call);
  check.sizes({rows, n}).range("k", k, 1, n).range("largest", call.ints[3], 0, 1);
  if (check.status()) return check.status();
  return check.holds("src", 0, {rows, n}).holds("values", 1, {rows, k}).holds("places", 2, {rows, k}).status();
}

template <typename T, typename Place>
void sort_rows(const Call& call, ThreadPool& pool) {
  const int64_t rows = call.ints[0], n = call.ints[1], k = call.ints[2];
  const bool largest = call.ints[3] != 0;
  pool.shared(rows, kElementWork * n, [&](int64_t begin, int64_t end) {
    std::vector<Element<decltype(key_of(T{}, false))>> elements(static_cast<size_t>(n)), other;
    for (int64_t row = begin; row < end; ++row) {
      const T* src = call.buffers[0].as<T>() + row * n;
      for (int64_t i = 0; i < n; ++i) elements[static_cast<size_t>(i)] = {key_of(src[i], largest), static_cast<uint32_t>(i)};
      sort(elements, other);
      for (int64_t i = 0; i < k; ++i) {
        const uint32_t place = elements[static_cast<size_t>(i)].place;
        call.buffers[1].as<T>()[row * k + i] = src[place];
        call.buffers[2].as<Place>()[row * k + i] = static_cast<Place>(place);
      }
    }
  });
}

template <typename T>
void sort_by(const Call& call, ThreadPool& pool) {
  call.buffers[2].type == Type::i32 ? sort_rows<T, int32_t>(call, pool) : sort_rows<T, int64_t>(call, pool);
}

void run_sort(const Call& call, ThreadPool& pool) {
  const Type type = call.buffers[0].type;
  type == Type::f32 ? sort_by<float>(call, pool) : type == Type::i32 ? sort_by<int32_t>(call, pool) : sort_by<int64_t>(call, pool);
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

// A whole number of a buffer of places.
int64_t place_in(const View& view, int64_t at) {
  return view.type == Type::i32 ? view.as<int32_t>()[at] : view.as<int64_t>()[at];
}

Status check_suppress(const Call& call) {
  const int64_t batch = call.ints[0], n = call.ints[1], rows = call.ints[2], length = call.ints[3], rounds = call.ints[4];
  Check check(call);
  check.sizes({batch, n, rows, length, rounds});
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
      const float *boxes = call.buffers[0].as<float>() + row / (rows / batch) * n * kNumbers;
      int64_t* dst = call.buffers[3].as<int64_t>() + row * rounds;
      const int64_t valid = std::clamp<int64_t>(place_in(call.buffers[2], row), 0, length);
      Taken taken;
      int64_t found = 0;
      for (int64_t i = 0; i < valid && found < rounds; ++i) {
        const int64_t place = std::clamp<int64_t>(place_in(call.buffers[1], row * length + i), 0, n - 1);
        const float* box = boxes + place * kNumbers;
        if (taken.overlap(box, call.floats[0])) continue;
        taken.add(box);
        dst[found++] = place;
      }
      std::fill(dst + found, dst + rounds, -1);
    }
  });
}

}  // namespace

const Operation kSortRows{"sort_rows", 3, 4, 0, check_sort, run_sort, "nnp"};
const Operation kSuppressRows{"suppress_rows", 4, 5, 1, check_suppress, run_suppress, "fppl"};

}  // namespace pocketfarm::cpu
