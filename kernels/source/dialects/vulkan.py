"""GLSL for Vulkan 1.1: constants are `#define`s, the work-group size is specialisation constants 0, 1, 2.

Where a driver computes work-items as the lanes of a vector and loads storage buffers lane by lane (`Reading`), operands
are read as texels, and the lanes of a subgroup load different weights and hand them to each other.

A multiplication and an addition that belong together are written as `fma`; the others stay two operations, because
`kernels/codegen/no_contraction.py` forbids a driver to join them; NaN passes through what clamps and compares.
Relaxed precision leaves all three to the driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from kernels.options import CONTRACTED, HALF, Limits, Precision
from kernels.source import whole_numbers
from kernels.source.chunks import chunk_macros
from kernels.source.kernel import Buffer, Kernel
from kernels.source.macros import MACROS, buffer_accessors_at, image_accessors, raw_as_computed

PRELUDE = """\
#define WIDE4 vec4
#define WIDE_SPLAT(a) vec4(a)
#define WIDE_VEC4(a, b, c, d) vec4((a), (b), (c), (d))
#define TO_WIDE4(a) vec4(a)
#define FLOAT(a) float(a)
#define TO_INT(a) int(a)
#define MAX(a, b) max((a), (b))
#define LOWEST uintBitsToFloat(0xff800000u)
#define IMAX(a, b) max((a), (b))
#define IMIN(a, b) min((a), (b))
#define EXP(a) exp(a)
#define SQRT(a) sqrt(a)
#define ROUND(a) roundEven(a)
#define TO_BITS1(a) floatBitsToUint(a)
#define FROM_BITS1(a) uintBitsToFloat(a)
#define POW(a, b) pow((a), (b))
#define LOCAL_ID(d) int(gl_LocalInvocationID[d])
#define LOCAL_SIZE(d) int(gl_WorkGroupSize[d])
#define BARRIER barrier()
#define SET_LANE(array, i, lane, v) (array[i][lane] = (v))
#define WIDEV vec4
#define TO_WIDEV(a) vec4(a)
#define WIDE_VSPLAT(a) vec4(a)
#define LOADV_weight(i) LOAD_weight(i)
#define LOADV_bias(i) LOAD_bias(i)
#define LOADV_FROM_b(i) LOAD_b(i)
#define LOADV_FROM_bias(i) LOAD_bias(i)
#define PART(v, part) (v)
#define IS_NAN(a) greaterThan(floatBitsToUint(a) & 0x7fffffffu, uvec4(0x7f800000u))
#define IS_NAN1(a) ((floatBitsToUint(a) & 0x7fffffffu) > 0x7f800000u)
"""
_GROUPS = """\
#define GLOBAL_ID(d) int(gl_GlobalInvocationID[d])
#define GROUP_ID(d) int(gl_WorkGroupID[d])
"""
_FOLDED_GROUPS = """\
#define GROUP_AT int(gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x)
#define GROUP_ID(d) (ivec3(GROUP_AT % GROUPS_X, GROUP_AT / GROUPS_X % GROUPS_Y, GROUP_AT / GROUPS_X / GROUPS_Y)[d])
#define GLOBAL_ID(d) (GROUP_ID(d) * LOCAL_SIZE(d) + LOCAL_ID(d))
"""
"""Along more axes than they are dispatched on, because along one they may be too many."""
_EACH_LOADS = """\
#define LEAVE_IF(condition) if (condition) return
#define LEFT false
#define FETCH_WEIGHTS(at) const int weights_at = (at)
#define WEIGHT(n) LOAD_weight(weights_at + (n))
"""
_SHUFFLE_EXTENSIONS = "".join(f"#extension GL_KHR_shader_subgroup_{name} : require\n" for name in ("basic", "shuffle"))
_COMPUTED = """\
#define FLOAT4 {vector}
#define VEC4(a, b, c, d) {vector}((a), (b), (c), (d))
#define SPLAT(a) {vector}(a)
#define ZERO {scalar}(0.0f)
#define TO_COMPUTED(a) {vector}(a)
#define VECTOR {vector}
#define VSPLAT(a) {vector}(a)
"""
_SINGLE, _NARROW = {"vector": "vec4", "scalar": "float"}, {"vector": "f16vec4", "scalar": "float16_t"}
_FUSED, _CONTRACTED = "#define MAD(a, b, c) fma((a), (b), (c))\n", "#define MAD(a, b, c) ((a) * (b) + (c))\n"
_EXACT = """\
#define AT_LEAST(v, least) mix(max((v), (least)), (v), IS_NAN(v))
#define AT_MOST(v, most) mix(min((v), (most)), (v), IS_NAN(v))
#define AT_LEAST1(v, least) (IS_NAN1(v) ? (v) : max((v), (least)))
#define AT_MOST1(v, most) (IS_NAN1(v) ? (v) : min((v), (most)))
#define LARGER(a, b) mix(mix((b), (a), greaterThan((a), (b))), (a), IS_NAN(a))
"""
"""NVIDIA's driver makes `max` of `v < least ? least : v`, and so loses NaN; the bits it leaves alone."""
_LOG = """\
float LOG(float x) {
    if (!(x >= 1.17549435e-38f && x < -LOWEST)) return log(x);
    const uint bits = floatBitsToUint(x);
    const float half_of = uintBitsToFloat((bits & 0x007fffffu) | 0x3f000000u);
    const bool small = half_of < 0.707106781186547524f;
    const float e = float(int(bits >> 23) - 126) - (small ? 1.0f : 0.0f);
    const float m = (small ? half_of + half_of : half_of) - 1.0f;
    const float z = m * m;
    float sum = 7.0376836292e-2f;
    sum = fma(sum, m, -1.1514610310e-1f);
    sum = fma(sum, m, 1.1676998740e-1f);
    sum = fma(sum, m, -1.2420140846e-1f);
    sum = fma(sum, m, 1.4249322787e-1f);
    sum = fma(sum, m, -1.6668057665e-1f);
    sum = fma(sum, m, 2.0000714765e-1f);
    sum = fma(sum, m, -2.4999993993e-1f);
    sum = fma(sum, m, 3.3333331174e-1f) * m * z;
    sum = fma(e, -2.12194440e-4f, sum);
    sum = fma(-0.5f, z, sum);
    return fma(e, 0.693359375f, m + sum);
}
"""
"""Cephes' `logf`: Vulkan's own may be wrong by 2^-21 between 0.5 and 2, however little is left of the logarithm there
(docs/decisions/0114). Zero, infinity, NaN, what is negative or denormal is the driver's."""
_DIVISIONS = {
    True: "#define DIVIDE(a, b) ((a) / (b))\n",
    False: """\
float DIVIDE(float a, float b) {
    const float q = a / b, better = fma(fma(-q, b, a), 1.0f / b, q);
    return IS_NAN1(better) || isinf(better) ? q : better;
}
""",
}
"""By whether the device is a CPU, which divides exactly. A GPU may be wrong by 2.5 units in the last place."""
_IMPRECISE = """\
#define AT_LEAST(v, least) max((v), (least))
#define AT_MOST(v, most) min((v), (most))
#define AT_LEAST1(v, least) max((v), (least))
#define AT_MOST1(v, most) min((v), (most))
#define LARGER(a, b) max((a), (b))
"""
_RAW = """\
#define RAW4 uvec2
#define RAW_ZERO uvec2(0)
#define FROM_RAW(v) vec4(unpackHalf2x16((v).x), unpackHalf2x16((v).y))
"""
MATRICES = """\
layout(constant_id = 3) const uint MATRIX_ROWS = UNIT_ROWS;
layout(constant_id = 4) const uint MATRIX_COLUMNS = UNIT_COLUMNS;
layout(constant_id = 5) const uint MATRIX_DEPTH = UNIT_DEPTH;
#define MATRIX_LEFT fcoopmatNV<16, gl_ScopeSubgroup, MATRIX_ROWS, MATRIX_DEPTH>
#define MATRIX_RIGHT fcoopmatNV<16, gl_ScopeSubgroup, MATRIX_DEPTH, MATRIX_COLUMNS>
#define MATRIX_SUM fcoopmatNV<32, gl_ScopeSubgroup, MATRIX_ROWS, MATRIX_COLUMNS>
#define NO_SUM MATRIX_SUM(0.0f)
#define LOAD_LEFT(m, array, at, pitch) coopMatLoadNV((m), array, (at), (pitch), false)
#define LOAD_COLUMNS(m, array, at, pitch) coopMatLoadNV((m), array, (at), (pitch), true)
#define LOAD_ROWS(m, array, at, pitch) coopMatLoadNV((m), array, (at), (pitch), false)
#define STORE_MATRIX(m, array, at, pitch) coopMatStoreNV((m), array, (at), (pitch), false)
#define MULTIPLY_ADD(a, b, sum) coopMatMulAddNV((a), (b), (sum))
#define FROM_BITS(v) uintBitsToFloat(v)
#define TO_BITS(v) floatBitsToUint(v)
#define NEAR uvec4
#define LOAD_NEAR(near, at) near = RIGHT_AT((at) + LANE)
#define FRAGMENT(m, near) { \\
    f16vec2 two = unpackFloat2x16((near).x); m[0] = two.x; m[1] = two.y; \\
    two = unpackFloat2x16((near).y); m[2] = two.x; m[3] = two.y; \\
    two = unpackFloat2x16((near).z); m[4] = two.x; m[5] = two.y; \\
    two = unpackFloat2x16((near).w); m[6] = two.x; m[7] = two.y; }
#define LEFT_OF(m, a, b, c, d) FRAGMENT(m, uvec4((a), (c), (b), (d)))
#define ELEMENT(m, e) float(m[e])
#define FILL_SUM(m, v) { \\
    m = NO_SUM; m[0] = (v).x; m[1] = (v).y; m[2] = (v).z; m[3] = (v).w; \\
    m[4] = (v).x; m[5] = (v).y; m[6] = (v).z; m[7] = (v).w; }
#define SUM_UP(m) vec4((m)[0], (m)[1], (m)[2], (m)[3])
#define SUM_LOW(m) vec4((m)[4], (m)[5], (m)[6], (m)[7])
#define SCALE_SUM(m, up, low) { \\
    m[0] *= (up); m[1] *= (up); m[2] *= (up); m[3] *= (up); \\
    m[4] *= (low); m[5] *= (low); m[6] *= (low); m[7] *= (low); }
#define LOAD_SUM(m, array, at, pitch) coopMatLoadNV((m), array, (at), (pitch), false)
#define EXCHANGE(to, v, mask) to = subgroupShuffleXor((v), (mask))
#define EXP2(a) exp2(a)
#define TWO_HALVES(a, b) packHalf2x16(vec2((a), (b)))
#define RAW8 uvec4
#define RAW8_ZERO uvec4(0)
#if SIDES > 5 || defined(PAIRED)
#define SUBGROUP (LOCAL_ID(0) / WIDTH)
#define LANE (LOCAL_ID(0) % WIDTH)
#else
#define SUBGROUP int(gl_SubgroupID)
#define LANE int(gl_SubgroupInvocationID)
#endif
#define SUBGROUP_BARRIER subgroupBarrier()
"""
"""Matrices of a subgroup, in elements of the arrays that they are loaded from. The three sizes are constants of their
own, so that the types differ (`kernels/codegen/cooperative_matrices.py`)."""
UNITS = """\
#define ROLLED [[dont_unroll]]
#define IN_REGISTERS (SIDES == 4 || SIDES == 6)
#define LEFT_NEAR(m, near) LEFT_OF(m, (near).x, (near).z, (near).y, (near).w)
#define RAW8_OF(a, b, c, d) uvec4((a), (b), (c), (d))
#define RAW8_PAIR(a, b) uvec4((a), (b))
#define RAW4_OF(v) uvec2(packHalf2x16((v).xy), packHalf2x16((v).zw))
#define LOW_HALVES(a, b) (((a) & 0xffffu) | (b) << 16)
#define HIGH_HALVES(a, b) ((a) >> 16 | ((b) & 0xffff0000u))
#define NOT_A_NUMBER uintBitsToFloat(0x7fc00000u)
#define SPREAD(line, n) ((line) / 8 * 8 + (line) % (n) * (8 / (n)) + (line) % 8 / (n))
#define PUT_HALVES(array, at, a, b) \\
    array[at] = uvec4(packHalf2x16((a).xy), packHalf2x16((a).zw), packHalf2x16((b).xy), packHalf2x16((b).zw))
#if TURNED
#define LOAD_RIGHT(m, array, at, pitch) LOAD_COLUMNS(m, array, at, pitch)
#else
#define LOAD_RIGHT(m, array, at, pitch) LOAD_ROWS(m, array, at, pitch)
#endif
"""
"""What follows from `MATRICES`."""
MATRIX_EXTENSIONS = "".join(
    f"#extension GL_{name} : require\n"
    for name in (
        "NV_cooperative_matrix", "KHR_memory_scope_semantics", "KHR_shader_subgroup_basic",
        "KHR_shader_subgroup_shuffle",
    )
)  # fmt: skip
_ROLLED_EXTENSION = "#extension GL_EXT_control_flow_attributes : require\n"
_STORAGE_EXTENSION = "#extension GL_EXT_shader_16bit_storage : require\n"
_ARITHMETIC_EXTENSION = "#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require\n"


_IMAGE_EXTENSION = "#extension GL_EXT_samplerless_texture_functions : require\n"
Texel = Literal["", "r32f", "rgba32f", "rgba16f"]


@dataclass(frozen=True)
class Reading:
    """How a device reads buffers fastest."""

    texels: bool = False
    """As storage texel buffers."""
    sharing: int = 0
    """Work-items of a subgroup, where they hand each other what each has loaded; 0: each loads all that it needs."""


def reading_of(limits: Limits) -> Reading:
    """Texels and sharing on a CPU behind Vulkan (docs/decisions/0026)."""
    size = limits.subgroup_size
    return Reading(limits.cpu_device, size if limits.cpu_device and size >= 4 and size & (size - 1) == 0 else 0)


def texel_of(buffer: Buffer, reading: Reading, *, half: bool) -> Texel:
    """The format of a buffer that is read as texels; empty: a storage buffer."""
    if not reading.texels or buffer.access != "read" or buffer.image or buffer.storage == "i32":
        return ""
    if half and buffer.storage == "data":
        return "rgba16f" if buffer.lanes == 4 else ""
    return "rgba32f" if buffer.lanes == 4 else "r32f"


def render(
    kernel: Kernel, constants: Mapping[str, int], precision: Precision = "fp32", reading: Reading = Reading()
) -> str:
    """Text of the compute shader."""
    narrow = kernel.is_narrow(precision)
    extensions = (_STORAGE_EXTENSION if precision in HALF else "") + (
        _ARITHMETIC_EXTENSION if narrow or kernel.matrix_units else ""
    )
    extensions += MATRIX_EXTENSIONS + _ROLLED_EXTENSION if kernel.matrix_units else ""
    if any(buffer.image and buffer.access == "read" for buffer in kernel.buffers):
        extensions += _IMAGE_EXTENSION
    weights = _EACH_LOADS
    if reading.sharing and not narrow and "FETCH_WEIGHTS" in kernel.source(constants):  # few drivers shuffle halves
        extensions += _SHUFFLE_EXTENSIONS
        weights = _shared_weights(constants["WEIGHTS"], reading.sharing)
    defines = "".join(f"#define {name} {value}\n" for name, value in constants.items())
    if kernel.whole_numbers:
        defines += whole_numbers.VULKAN_EXTENSION
    in_buffers = not reading.texels and not any(buffer.image for buffer in kernel.buffers)
    raw = kernel.loads_raw and precision in HALF and not narrow and in_buffers
    buffers = "\n".join(
        _buffer(
            binding,
            buffer,
            precision,
            texel_of(buffer, reading, half=precision in HALF),
            raw=raw,
            eights=kernel.matrix_units,
        )
        for binding, buffer in enumerate(kernel.buffers)
    )
    members = "".join(f"    int {name};\n" for name in kernel.ints) + "".join(
        f"    float {name};\n" for name in kernel.floats
    )
    computed = _COMPUTED.format(**(_NARROW if narrow else _SINGLE))
    computed += _CONTRACTED if precision in CONTRACTED else _FUSED
    computed += _IMPRECISE if precision == "imprecise" else _EXACT
    types = {"computed": "FLOAT4", "f32": "vec4", "raw8": "uvec4", "i32": "ivec4"}
    arrays = "".join(
        f"shared {types[array.storage] if array.lanes == 4 else 'float'} {array.name}[{array.size}];\n"
        for array in kernel.locals
    )
    scalars = f"layout(push_constant) uniform Scalars {{\n{members}}};\n" if members else ""
    folded = "GROUPS_X" in constants
    groups, body = _FOLDED_GROUPS if folded else _GROUPS, kernel.source(constants)
    if folded:
        body = f"{{\nif (GROUP_ID(2) >= GROUPS_Z) return;\n{body}}}\n"
    return (
        f"#version 450\n{extensions}{defines}{PRELUDE}{groups}{computed}{weights}"
        f"{chunk_macros(kernel, constants, narrow=narrow)}{MACROS}{_RAW if raw else ''}"
        f"{MATRICES + UNITS if kernel.matrix_units else ''}{whole_numbers.VULKAN if kernel.whole_numbers else ''}"
        f"{_functions(body, reading)}"
        f"layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;\n"
        f"{buffers}\n{'' if raw else raw_as_computed(kernel)}{scalars}{arrays}\nvoid main()\n{body}"
    )


def _functions(body: str, reading: Reading) -> str:
    """Those that are more than a macro, where the kernel calls them."""
    return (_LOG if "LOG(" in body else "") + (_DIVISIONS[reading.texels] if "DIVIDE" in body else "")


def _image(binding: int, buffer: Buffer, precision: Precision) -> str:
    """Read through a sampled image, which texture units cache; written through a storage image."""
    name, place = buffer.name, f"set = 0, binding = {binding}"
    if buffer.access == "read":
        declared, width = f"layout({place}) uniform texture2D {name};", f"textureSize({name}, 0).x"
    else:
        texel = "rgba16f" if precision in HALF else "rgba32f"
        declared, width = f"layout({place}, {texel}) uniform writeonly image2D {name};", f"imageSize({name}).x"
    return f"{declared}\n" + image_accessors(
        buffer, width=width, pair="ivec2({x}, {y})", load=f"texelFetch({name}, {{at}}, 0)",
        store=f"imageStore({name}, {{at}}, {{value}})",
    )  # fmt: skip


def _shared_weights(count: int, size: int) -> str:
    """Each of `size` work-items loads one of `count` vectors of weights, in turns; none leaves before the others."""
    turns = -(-count // size)
    lane = "int(gl_SubgroupInvocationID)"
    at = [f"IMIN({turn * size} + {lane}, {count - 1})" for turn in range(turns)]
    loads = " ".join(f"weights[{turn}] = LOAD_weight((at) + {at[turn]});" for turn in range(turns))
    return (
        "#define LEAVE_IF(condition) const bool has_left = (condition)\n#define LEFT has_left\n"
        f"#define FETCH_WEIGHTS(at) vec4 weights[{turns}]; {loads}\n"
        f"#define WEIGHT(n) subgroupShuffle(weights[(n) / {size}], uint((n) % {size}))\n"
    )


def _by_eights(binding: int, buffer: Buffer) -> str:
    """The same buffer again, in vectors of eight halves."""
    return (
        f"\nlayout(std430, set = 0, binding = {binding}) readonly buffer Eights_{buffer.name}"
        f" {{ uvec4 eights_{buffer.name}[]; }};\n#define LOAD_RAW8_{buffer.name}(i) eights_{buffer.name}[i]"
    )


def _buffer(
    binding: int, buffer: Buffer, precision: Precision, texel: Texel, *, raw: bool = False, eights: bool = False
) -> str:
    """A buffer and its accessors; what is read is converted to what the kernel computes in, with `raw` later."""
    if buffer.image:
        return _image(binding, buffer, precision)
    computed = "FLOAT4" if buffer.lanes == 4 else "float"
    if texel:
        width = "" if buffer.lanes == 4 else ".x"
        return (
            f"layout({texel}, set = 0, binding = {binding}) readonly restrict uniform imageBuffer {buffer.name};\n"
            f"#define LOAD_{buffer.name}(i) ({computed}(imageLoad({buffer.name}, (i)){width}))"
            f"{buffer_accessors_at(buffer)}"
        )
    is_half = precision in HALF and buffer.storage == "data"
    wide, stored = ("vec4", "f16vec4") if buffer.lanes == 4 else ("float", "float16_t")
    if buffer.storage == "i32":
        element = computed = "ivec4" if buffer.lanes == 4 else "int"
    else:
        element = stored if is_half else wide
    if raw and is_half and buffer.access == "read" and buffer.lanes == 4:
        return (
            f"layout(std430, set = 0, binding = {binding}) readonly restrict buffer Buffer_{buffer.name}"
            f" {{ uvec2 {buffer.name}[]; }};\n#define LOAD_RAW_{buffer.name}(i) {buffer.name}[i]\n"
            f"#define LOAD_{buffer.name}(i) FROM_RAW({buffer.name}[i]){buffer_accessors_at(buffer)}"
            f"{_by_eights(binding, buffer) if eights else ''}"
        )
    name, access = buffer.name, {"read": "readonly ", "write": "writeonly ", "readwrite": ""}[buffer.access]
    load = f"#define LOAD_{name}(i) ({computed}({name}[i]))"
    store = f"#define STORE_{name}(i, v) {name}[i] = {element}(v)"
    accessor = {"read": load, "write": store, "readwrite": f"{load}\n{store}"}[buffer.access]
    layout = f"layout(std430, set = 0, binding = {binding}) {access}restrict buffer"
    again = ""
    if eights and is_half and buffer.access == "write" and buffer.lanes == 4:
        again = f"\n{layout} Eights_{name} {{ uvec4 eights_{name}[]; }};\n"
        again += f"#define STORE_RAW8_{name}(i, v) eights_{name}[i] = v"
    return f"{layout} Buffer_{name} {{ {element} {name}[]; }};\n{accessor}{buffer_accessors_at(buffer)}{again}"
