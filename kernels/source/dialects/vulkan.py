"""GLSL for Vulkan 1.1: tunables are `#define`s, the work-group size is specialisation constants 0, 1, 2.

A multiplication and an addition that belong together are written as `fma`; the others stay two operations, because
`kernels/contraction.py` forbids a driver to join them; NaN passes through what clamps and compares. Relaxed precision
leaves all three to the driver.
"""

from __future__ import annotations

from collections.abc import Mapping

from kernels.options import HALF, Precision
from kernels.source.chunks import chunk_macros
from kernels.source.kernel import BufferSpec, Kernel, derived
from kernels.source.macros import MACROS, buffer_accessors_at, image_accessors

PRELUDE = """\
#define WIDE4 vec4
#define WIDE_SPLAT(a) vec4(a)
#define TO_WIDE4(a) vec4(a)
#define FLOAT(a) float(a)
#define MAX(a, b) max((a), (b))
#define LOWEST uintBitsToFloat(0xff800000u)
#define IMAX(a, b) max((a), (b))
#define IMIN(a, b) min((a), (b))
#define EXP(a) exp(a)
#define SQRT(a) sqrt(a)
#define POW(a, b) pow((a), (b))
#define GLOBAL_ID(d) int(gl_GlobalInvocationID[d])
#define GROUP_ID(d) int(gl_WorkGroupID[d])
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
"""
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
_EXACT = """\
#define MAD(a, b, c) fma((a), (b), (c))
#define AT_LEAST(v, least) mix((v), (least), lessThan((v), (least)))
#define AT_MOST(v, most) mix((v), (most), greaterThan((v), (most)))
#define AT_LEAST1(v, least) ((v) < (least) ? (least) : (v))
#define AT_MOST1(v, most) ((v) > (most) ? (most) : (v))
#define LARGER(a, b) mix(mix((b), (a), greaterThan((a), (b))), (a), IS_NAN(a))
#define IS_NAN(a) greaterThan(floatBitsToUint(a) & 0x7fffffffu, uvec4(0x7f800000u))
"""
_RELAXED = """\
#define MAD(a, b, c) ((a) * (b) + (c))
#define AT_LEAST(v, least) max((v), (least))
#define AT_MOST(v, most) min((v), (most))
#define AT_LEAST1(v, least) max((v), (least))
#define AT_MOST1(v, most) min((v), (most))
#define LARGER(a, b) max((a), (b))
"""
_STORAGE_EXTENSION = "#extension GL_EXT_shader_16bit_storage : require\n"
_ARITHMETIC_EXTENSION = "#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require\n"


_IMAGE_EXTENSION = "#extension GL_EXT_samplerless_texture_functions : require\n"


def render(kernel: Kernel, tunables: Mapping[str, int], precision: Precision = "fp32") -> str:
    """Text of the compute shader."""
    tunables, narrow = derived(tunables), kernel.is_narrow(precision)
    extensions = (_STORAGE_EXTENSION if precision in HALF else "") + (_ARITHMETIC_EXTENSION if narrow else "")
    if any(buffer.image and buffer.access == "read" for buffer in kernel.buffers):
        extensions += _IMAGE_EXTENSION
    defines = "".join(f"#define {name} {value}\n" for name, value in tunables.items())
    buffers = "\n".join(_buffer(binding, buffer, precision) for binding, buffer in enumerate(kernel.buffers))
    members = "".join(f"    int {name};\n" for name in kernel.ints) + "".join(
        f"    float {name};\n" for name in kernel.floats
    )
    computed = _COMPUTED.format(**(_NARROW if narrow else _SINGLE)) + (_RELAXED if precision == "relaxed" else _EXACT)
    types = {"computed": "FLOAT4", "f32": "vec4"}
    arrays = "".join(
        f"shared {types[array.storage] if array.lanes == 4 else 'float'} {array.name}[{array.size}];\n"
        for array in kernel.locals
    )
    scalars = f"layout(push_constant) uniform Scalars {{\n{members}}};\n" if members else ""
    return (
        f"#version 450\n{extensions}{defines}{PRELUDE}{computed}{chunk_macros(kernel, tunables, narrow=narrow)}{MACROS}"
        f"layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;\n"
        f"{buffers}\n{scalars}{arrays}\nvoid main()\n{kernel.source(tunables)}"
    )


def _image(binding: int, buffer: BufferSpec, precision: Precision) -> str:
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


def _buffer(binding: int, buffer: BufferSpec, precision: Precision) -> str:
    """A storage buffer and its accessor; what is read is converted to what the kernel computes in."""
    if buffer.image:
        return _image(binding, buffer, precision)
    is_half = precision in HALF and buffer.storage == "data"
    wide, stored = ("vec4", "f16vec4") if buffer.lanes == 4 else ("float", "float16_t")
    element = stored if is_half else wide
    name, access = buffer.name, "readonly" if buffer.access == "read" else "writeonly"
    computed = "FLOAT4" if buffer.lanes == 4 else "float"
    accessor = (
        f"#define LOAD_{name}(i) ({computed}({name}[i]))"
        if buffer.access == "read"
        else f"#define STORE_{name}(i, v) {name}[i] = {element}(v)"
    )
    layout = f"layout(std430, set = 0, binding = {binding}) {access} restrict buffer"
    return f"{layout} Buffer_{name} {{ {element} {name}[]; }};\n{accessor}{buffer_accessors_at(buffer)}"
