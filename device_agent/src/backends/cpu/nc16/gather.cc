#include "gather.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "nc16.h"

namespace pocketfarm::cpu {
namespace {

// Outputs x of [first, first + count) of one row that read inside the input at tap column `kx`.
struct Inside {
  int64_t begin, end;
};
Inside inside(const Window& v, int64_t kx, int64_t first, int64_t count) {
  const int64_t shift = kx * v.dw - v.pad_l;  // input column of output column 0
  int64_t low = -shift, high = v.w - shift;
  if (v.sw > 1) low = (std::max<int64_t>(low, 0) + v.sw - 1) / v.sw, high = (std::max<int64_t>(high, 0) + v.sw - 1) / v.sw;
  const int64_t begin = std::clamp(low, first, first + count);
  return {begin, std::clamp(high, begin, first + count)};
}

// `Width` floats a pixel, from row `iy` of a plane at tap column `kx`, of which the outputs `valid` read inside.
template <int64_t Width>
void gather_row(const Window& v, const float* plane, int64_t iy, int64_t kx, int64_t first, int64_t count, Inside valid,
                float* out) {
  if (iy < 0 || iy >= v.h) {
    std::fill_n(out, count * Width, 0.0f);
    return;
  }
  const float* from = plane + (iy * v.w + valid.begin * v.sw + kx * v.dw - v.pad_l) * Width;
  for (float* end = out + (valid.begin - first) * Width; out < end; ++out) *out = 0;
  const int64_t width = valid.end - valid.begin;
  if (v.sw == 1) {
    std::memcpy(out, from, static_cast<size_t>(width * Width) * sizeof(float));
  } else {
    for (int64_t i = 0; i < width; ++i)
      for (int64_t lane = 0; lane < Width; ++lane) out[i * Width + lane] = from[i * v.sw * Width + lane];
  }
  out += width * Width;
  for (float* end = out + (first + count - valid.end) * Width; out < end; ++out) *out = 0;
}

// By parts of rows of outputs: where these read inside is worked out once for all planes.
template <int64_t Width>
void gather(const Window& v, const float* src, int64_t planes, int64_t pixel, int64_t count, int64_t stride, float* panel) {
  std::vector<Inside> valid(static_cast<size_t>(v.kw));
  int64_t oy = pixel / v.ow, ox = pixel % v.ow;
  for (int64_t done = 0, run; done < count; done += run, ++oy, ox = 0) {
    run = std::min(count - done, v.ow - ox);
    for (int64_t kx = 0; kx < v.kw; ++kx) valid[static_cast<size_t>(kx)] = inside(v, kx, ox, run);
    float* out = panel + done * Width;
    for (int64_t plane = 0; plane < planes; ++plane)
      for (int64_t ky = 0; ky < v.kh; ++ky)
        for (int64_t kx = 0; kx < v.kw; ++kx, out += stride * Width)
          gather_row<Width>(v, src + plane * v.h * v.w * Width, oy * v.sh + ky * v.dh - v.pad_t, kx, ox, run,
                            valid[static_cast<size_t>(kx)], out);
  }
}

}  // namespace

void gather_blocks(const Window& window, const float* src, int64_t blocks, int64_t pixel, int64_t count, float* panel) {
  gather<kBlock>(window, src, blocks, pixel, count, count, panel);
}

void gather_planes(const Window& window, const float* src, int64_t channels, int64_t pixel, int64_t count,
                   int64_t stride, float* panel) {
  gather<1>(window, src, channels, pixel, count, stride, panel);
}

}  // namespace pocketfarm::cpu
