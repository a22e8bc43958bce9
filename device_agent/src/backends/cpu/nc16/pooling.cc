// pool2d and global_average_pool on blocks of sixteen channels.
#include "nc16.h"
#include "kernels.h"
#include "backends/cpu/operations/operation.h"

namespace pocketfarm::cpu {
namespace {

struct Pool {
  int64_t n, c, mode, dst_channels, dst_offset, pad_b, pad_r;
  Window window;

  explicit Pool(const Call& call) {
    const int32_t* i = call.ints.data();
    n = i[0], c = i[1], mode = i[12], dst_channels = i[13], dst_offset = i[14], pad_b = i[15], pad_r = i[16];
    window = {i[2], i[3], i[4], i[5], i[6], i[7], i[8], i[9], i[10], i[11], 1, 1};
  }
};

Status check_pool(const Call& call) {
  const Pool v(call);
  const Window& w = v.window;
  Check check(call);
  check.sizes({v.n, v.c, w.h, w.w, w.oh, w.ow, w.kh, w.kw, w.sh, w.sw, v.dst_channels}).range("mode", v.mode, 0, 2);
  for (int64_t pad : {w.pad_t, w.pad_l, v.pad_b, v.pad_r}) check.range("a pad", pad, 0, Check::kMaxSize);
  if (check.status()) return check.status();
  return check.range("dst_offset", v.dst_offset, 0, v.dst_channels - v.c)
      .that(v.dst_offset % kBlock == 0, "dst_offset must be a multiple of 16")
      .holds("src", 0, {v.n, blocks_of(v.c), kBlock, w.h, w.w})
      .holds("dst", 1, {v.n, blocks_of(v.dst_channels), kBlock, w.oh, w.ow})
      .status();
}

void run_pool(const Call& call, ThreadPool& pool) {
  const Pool v(call);
  const Window& w = v.window;
  const Nc16Kernels& kernels = nc16_kernels();
  const int64_t blocks = blocks_of(v.c), dst_blocks = blocks_of(v.dst_channels);
  pool.shared(v.n * blocks * w.oh, 2 * w.ow * w.kh * w.kw * kBlock, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t oy = i % w.oh, plane = i / w.oh;
      const int64_t target = plane / blocks * dst_blocks + v.dst_offset / kBlock + plane % blocks;
      kernels.pool_row(w, static_cast<PoolMode>(v.mode), v.pad_b, v.pad_r,
                       call.buffers[0].as<float>() + plane * w.h * w.w * kBlock, oy,
                       call.buffers[1].as<float>() + (target * w.oh + oy) * w.ow * kBlock);
    }
  });
}

Status check_global(const Call& call) {
  const int64_t n = call.ints[0], c = call.ints[1], hw = call.ints[2];
  return Check(call)
      .sizes({n, c, hw})
      .holds("src", 0, {n, blocks_of(c), kBlock, hw})
      .holds("dst", 1, {n, blocks_of(c), kBlock})
      .status();
}

void run_global(const Call& call, ThreadPool& pool) {
  const int64_t planes = call.ints[0] * blocks_of(call.ints[1]), hw = call.ints[2];
  const Nc16Kernels& kernels = nc16_kernels();
  pool.shared(planes, 2 * hw * kBlock, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane)
      kernels.mean(call.buffers[0].as<float>() + plane * hw * kBlock, hw, call.buffers[1].as<float>() + plane * kBlock);
  });
}

}  // namespace

const Operation kPool2dNc16{"pool2d_nc16", 2, 17, 0, check_pool, run_pool};
const Operation kGlobalAveragePoolNc16{"global_average_pool_nc16", 2, 3, 0, check_global, run_global};

}  // namespace pocketfarm::cpu
