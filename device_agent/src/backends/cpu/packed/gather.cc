// Rows of packed weights by their places, and what is checked of such weights.
#include "call.h"

#include <algorithm>

#include "backends/cpu/nc16/kernels.h"

namespace pocketfarm::cpu {

Packed packed_of(const Call& call, size_t first) {
  const int32_t* i = call.ints.data() + first;
  return {i[0], i[1], i[2], i[3], i[4]};
}

void check_packed(Check& check, const Packed& packed, const char* name, size_t buffer, int64_t rows, int64_t columns) {
  check.that((packed.bits >= 4 && packed.bits <= 6) || packed.bits == 8, "bits are " + std::to_string(packed.bits) + ", not 4, 5, 6 or 8")
      .range("block", packed.block, kBlock, kMostPackedBlock)
      .range("group", packed.group, kBlock, packed.block)
      .range("fields", packed.fields, 0, 31)
      .range("zero", packed.zero, 0, 255);
  if (check.status()) return;
  check.that(kMostPackedBlock % packed.block == 0 && packed.block % packed.group == 0 && packed.group % (packed.bits == 5 ? 32 : kBlock) == 0, "a block is no power of 2, or no multiple of its group");
  if (!check.status()) check.holds(name, buffer, {blocks_of(rows), packed.blocks(columns), packed.bytes()});
}

namespace {

Status check_gather(const Call& call) {
  const int64_t rows = call.ints[0], columns = call.ints[1], count = call.ints[2];
  Check check(call);
  check.sizes({rows, columns, count});
  if (check.status()) return check.status();
  check_packed(check, packed_of(call, 3), "src", 0, rows, columns);
  return check.holds("indices", 1, {count}).holds("dst", 2, {count, columns}).status();
}

void run_gather(const Call& call, ThreadPool& pool) {
  const int64_t rows = call.ints[0], columns = call.ints[1], count = call.ints[2];
  const Packed packed = packed_of(call, 3);
  const View& indices = call.buffers[1];
  pool.shared(count, columns * kBlock, [&](int64_t begin, int64_t end) {
    float panel[kMostPackedBlock * kBlock];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t asked = indices.type == Type::i32 ? indices.as<int32_t>()[i] : indices.as<int64_t>()[i];
      const int64_t row = std::clamp<int64_t>(asked < 0 ? asked + rows : asked, 0, rows - 1);
      const uint8_t* from = call.buffers[0].as<uint8_t>() + row / kBlock * packed.blocks(columns) * packed.bytes();
      float* dst = call.buffers[2].as<float>() + i * columns;
      for (int64_t first = 0; first < columns; first += packed.block, from += packed.bytes()) {
        nc16_kernels().unpack(packed, from, 1, panel);
        for (int64_t k = 0; k < std::min(packed.block, columns - first); ++k) dst[first + k] = panel[k * kBlock + row % kBlock];
      }
    }
  });
}

}  // namespace

const Operation kGatherPacked{"gather_packed", 3, 8, 0, check_gather, run_gather, "upf"};

}  // namespace pocketfarm::cpu
