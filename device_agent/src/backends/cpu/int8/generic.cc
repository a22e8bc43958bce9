// Any processor.
#include "kernel.h"

#define KERNELS kInt8Generic
#define PIXELS 1
#define BLOCKS 1
#define VECTOR_BYTES 16
#define WINDOW each_tap

namespace pocketfarm::cpu {
namespace {

template <int R, int V>
void tile_of(const Int8Product& p) {
  static_assert(R == 1 && V == 1);
  int32_t sum[16] = {};
  const int8_t* weight = p.weight;
  for (int64_t run = 0; run < p.runs; ++run) {
    const uint8_t* from = p.values + p.offsets[run];
    for (int64_t step = 0; step < p.steps; ++step, from += 4, weight += 64)
      for (int lane = 0; lane < 16; ++lane) {
        const int8_t* by = weight + 4 * lane;
        sum[lane] += from[0] * by[0] + from[1] * by[1] + from[2] * by[2] + from[3] * by[3];
      }
  }
  __builtin_memcpy(p.sums, sum, sizeof sum);
}

}  // namespace
}  // namespace pocketfarm::cpu

#include "kernel.inc"
