#include "conv_call.h"

namespace pocketfarm::cpu {
namespace {

Int8Steps steps_or_none(float scale, int32_t zero) { return scale > 0 ? given_steps(scale, zero) : Int8Steps{1, 1, 0}; }

bool in_floats(int32_t activation) {
  return activation >= static_cast<int32_t>(Activation::sigmoid) && activation != static_cast<int32_t>(Activation::leaky_relu);
}

}  // namespace

Int8Conv::Int8Conv(const Call& call) {
  src = call.buffers[0].as<float>(), scales = call.buffers[2].as<float>(), bias = call.buffers[4].as<float>(), residual = call.buffers[5].as<float>();
  affine = call.buffers[6].as<float>();
  weight = call.buffers[1].as<int8_t>();
  sums = call.buffers[3].as<int32_t>();
  values = call.buffers[7].as<uint8_t>();
  codes = call.buffers[call.buffers.size() - 2].as<uint8_t>(), dst = call.buffers.back().as<float>();
  const int32_t* i = call.ints.data();
  for (int64_t* field : {&n, &c, &h, &w, &k, &oh, &ow, &kh, &kw, &sh, &sw, &pad_t, &pad_l, &dh, &dw, &groups}) *field = *i++;
  source = static_cast<Int8Source>(i[0]), has_bias = i[1] != 0, has_residual = i[2], activation = i[3];
  dst_channels = i[4], dst_offset = i[5], by = static_cast<Int8By>(i[6]), sums_rounded = i[8] != 0, scaled = i[10] != 0;
  branch_rounded = i[11] != 0, writes = i[15], has_offsets = i[16] != 0;
  const float* f = call.floats.data();
  lo = f[0], hi = f[1], steps = steps_or_none(f[2], i[7]), sums_grid = steps_or_none(f[3], i[9]);
  branch_grid = steps_or_none(f[4], i[12]), residual_steps = steps_or_none(f[5], i[13]), out_steps = steps_or_none(f[6], i[14]);
  rows = (oh - 1) * sh + (kh - 1) * dh + 1, columns = (ow - 1) * sw + (kw - 1) * dw + 1;
}

Status Int8Conv::check(const Call& call, int64_t depth) const {
  const int32_t* i = call.ints.data() + 16;
  const float* f = call.floats.data();
  const int64_t channels = blocks_of(dst_channels) * kBlock;
  const bool writes_floats = (writes & 5) != 0, writes_codes = (writes & 2) != 0;
  Check check(call);
  check.range("depth", has_offsets ? 2 * depth : depth, 1, kInt8MostDepth)
      .range("source", i[0], 0, 2)
      .range("steps", i[6], 0, 2)
      .range("has_residual", has_residual, 0, 2)
      .range("activation", activation, 0, kLastActivation)
      .range("writes", writes, 1, 7)
      .that((writes & 5) != 5, "floats are written once")
      .range("dst_offset", dst_offset, 0, dst_channels - k)
      .that(dst_offset % kBlock == 0, "dst_offset must be a multiple of 16");
  for (int32_t zero : {i[7], i[9], i[12], i[13], i[14]}) check.range("a zero", zero, 0, 255);
  const bool codes_read = source == Int8Source::codes;
  const bool asked[] = {by == Int8By::given || codes_read, sums_rounded, branch_rounded, has_residual == 2, (writes & 6) != 0};
  for (int s = 0; s < 5; ++s) check.that(!asked[s] || f[2 + s] > 0, "a given scale must be positive");
  check.that(!codes_read || by == Int8By::given, "whole numbers need their scale")
      .holds("scale", 2, {blocks_of(k), kBlock})
      .holds("sums", 3, {has_offsets ? 2 : 1, blocks_of(k), kBlock});
  if (has_residual != 0) check.holds("residual", 5, {n * blocks_of(k) * oh * ow, kBlock}, has_residual == 1 ? Type::f32 : Type::u8);
  if (has_bias) check.holds("bias", 4, {blocks_of(k) * kBlock}, Type::f32);
  if (scaled) check.holds("affine", 6, {2 * blocks_of(k) * kBlock}, Type::f32);
  if (writes_codes) check.holds("codes", call.buffers.size() - 2, {n * channels, oh * ow}, Type::u8);
  if (writes_floats) check.holds("dst", call.buffers.size() - 1, {n * channels, oh * ow}, Type::f32);
  if (source == Int8Source::plain) return check.holds("src", 0, {n, c, h, w}, Type::f32).status();
  return check.holds("src", 0, {n, blocks_of(c), kBlock, h, w}, codes_read ? Type::u8 : Type::f32).status();
}

Int8End::Int8End(const Int8Conv& v, const Int8Steps& of_input, int64_t image, int64_t block)
    : v_(v), own_((image * blocks_of(v.k) + block) * v.oh * v.ow * kBlock),
      target_((image * blocks_of(v.dst_channels) + v.dst_offset / kBlock + block) * v.oh * v.ow * kBlock) {
  int8_kernels().correct(of_input, v.sums + block * kBlock, v.scales + block * kBlock, start_, factor_);
  how_.start = start_, how_.factor = factor_;
  how_.offsets = v.has_offsets ? v.offsets(block) : nullptr;
  if (v.has_bias) how_.bias = v.bias + block * kBlock;
  if (v.sums_rounded) how_.sums_grid = &v.sums_grid;
  if (v.scaled) how_.scale = v.affine + block * kBlock, how_.shift = how_.scale + blocks_of(v.k) * kBlock;
  if (v.branch_rounded) how_.branch_grid = &v.branch_grid;
  how_.residual_steps = v.residual_steps, how_.to.steps = v.out_steps;
  how_.activation = in_floats(v.activation) ? 0 : v.activation, how_.lo = v.lo, how_.hi = v.hi;
}

void Int8End::finish(const Int8Kernels& kernels, int64_t pixel, int64_t pixels, const int32_t* sums, const int32_t* windows) {
  const int64_t own = own_ + pixel * kBlock, target = target_ + pixel * kBlock;
  if (v_.has_residual == 1) how_.residual = v_.residual + own;
  if (v_.has_residual == 2) how_.residual_codes = reinterpret_cast<const uint8_t*>(v_.residual) + own;
  how_.windows = windows;
  Int8Store& to = how_.to;
  to.floats = (v_.writes & 1) != 0 ? v_.dst + target : nullptr, to.codes = (v_.writes & 2) != 0 ? v_.codes + target : nullptr;
  to.rounded = (v_.writes & 4) != 0 ? v_.dst + target : nullptr;
  if (!in_floats(v_.activation)) return kernels.finish(sums, pixels, how_);
  float tile[kInt8MostPixels * kBlock];
  const Int8Store at_last = to;
  to = {v_.out_steps, tile, nullptr, nullptr};
  kernels.finish(sums, pixels, how_);
  activate(tile, pixels * kBlock, v_.activation, v_.lo, v_.hi);
  kernels.store(tile, pixels, at_last);
}

}  // namespace pocketfarm::cpu
