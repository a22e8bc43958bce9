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
from pathlib import Path
from typing import Literal

from kernels.options import CONTRACTED, HALF, Limits, Precision
from kernels.source import dot_products, integers
from kernels.source.chunks import chunk_macros
from kernels.source.kernel import Buffer, Kernel, single_type
from kernels.source.macros import MACROS, planes_value, raw_as_computed
from kernels.source.texts import text_of

_HOME = Path(__file__).parent
PRELUDE = text_of(_HOME / "prelude.glsl")
_GROUPS = """\
#define GLOBAL_ID(d) int(gl_GlobalInvocationID[d])
#define GROUP_ID(d) int(gl_WorkGroupID[d])
"""
_FOLDED_GROUPS = """\
#define GROUP_AT int(gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x)
#define GROUP_ID(d) (ivec3(GROUP_AT % GROUPS_X, GROUP_AT / GROUPS_X % GROUPS_Y, GROUP_AT / GROUPS_X / GROUPS_Y)[d])
#define GLOBAL_ID(d) (GROUP_ID(d) * LOCAL_SIZE(d) + LOCAL_ID(d))
"""
"""Work-groups along more axes than they are dispatched on, because along one they may be too many."""
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
_LOG = text_of(_HOME / "log.glsl")
_DIVISIONS = {
    True: "#define DIVIDE(a, b) ((a) / (b))\n",
    False: """\
float DIVIDE(float a, float b) {
    const float q = a / b, better = fma(fma(-q, b, a), 1.0f / b, q);
    return IS_NAN1(better) || isinf(better) ? q : better;
}
""",
}
"""Division by whether the device is a CPU, which divides exactly. A GPU may be wrong by 2.5 units in the last place."""
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
_EIGHTS = """\
#define EIGHT uvec4
#define LOW4(v) vec4(unpackHalf2x16((v).x), unpackHalf2x16((v).y))
#define HIGH4(v) vec4(unpackHalf2x16((v).z), unpackHalf2x16((v).w))
"""
MATRICES = text_of(_HOME / "matrices.glsl")
UNITS = text_of(_HOME / "units.glsl")
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


Texel = Literal["", "r32f", "rgba32f", "rgba16f"]
_WHOLE = {"i32": "ivec4", "i64": "LONG4"}
"""Vectors of whole numbers."""


@dataclass(frozen=True)
class Reading:
    """The way in which a device reads buffers fastest."""

    texels: bool = False
    """True: as storage texel buffers."""
    sharing: int = 0
    """Work-items of a subgroup, where they hand each other what each has loaded; 0: each loads all that it needs."""


def reading_of(limits: Limits) -> Reading:
    """Texels and sharing on a CPU behind Vulkan (docs/architecture/engine-gpu.md)."""
    size = limits.subgroup_size
    return Reading(limits.cpu_device, size if limits.cpu_device and size >= 4 and size & (size - 1) == 0 else 0)


def texel_of(buffer: Buffer, reading: Reading, *, half: bool) -> Texel:
    """The format of a buffer that is read as texels; empty: a storage buffer."""
    if not reading.texels or buffer.access != "read" or buffer.planes or buffer.storage in _WHOLE:
        return ""
    if half and buffer.storage == "data":
        return "rgba16f" if buffer.lanes == 4 else ""
    return "rgba32f" if buffer.lanes == 4 else "r32f"


def render(
    kernel: Kernel, constants: Mapping[str, int], precision: Precision = "fp32", reading: Reading = Reading()
) -> str:
    """Text of the compute shader."""
    narrow = kernel.is_narrow(precision)
    in_halves, body = narrow or kernel.matrix_units, kernel.source(constants)
    is_wide = integers.is_wide(kernel, body)
    # The first version with compute shaders: at 450, which has functions of halves, the compiler takes twice as long.
    version = 450 if in_halves or is_wide else 430
    extensions = (_STORAGE_EXTENSION if precision in HALF else "") + (_ARITHMETIC_EXTENSION if in_halves else "")
    extensions += MATRIX_EXTENSIONS + _ROLLED_EXTENSION if kernel.matrix_units else ""
    extensions += integers.VULKAN_EXTENSION if is_wide else ""
    weights = _EACH_LOADS
    if reading.sharing and not narrow and "FETCH_WEIGHTS" in body:  # few drivers shuffle halves
        extensions += _SHUFFLE_EXTENSIONS
        weights = _shared_weights(constants["WEIGHTS"], reading.sharing)
    defines = "".join(f"#define {name} {value}\n" for name, value in constants.items())
    if kernel.whole_numbers:
        defines += dot_products.VULKAN_EXTENSION
    raw = kernel.loads_raw and precision in HALF and not narrow and not reading.texels
    buffers = "\n".join(
        _buffer(
            binding,
            buffer,
            precision,
            texel_of(buffer, reading, half=precision in HALF),
            raw=raw,
            eights=kernel.matrix_units or kernel.loads_eights,
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
        f"shared {types[array.storage] if array.lanes == 4 else kernel.type_of(array)} {array.name}[{array.size}];\n"
        for array in kernel.locals
    )
    scalars = f"layout(push_constant) uniform Scalars {{\n{members}}};\n" if members else ""
    folded = "GROUPS_X" in constants
    groups = _FOLDED_GROUPS if folded else _GROUPS
    if folded:
        body = f"{{\nif (GROUP_ID(2) >= GROUPS_Z) return;\n{body}}}\n"
    return (
        f"#version {version}\n{extensions}{defines}{PRELUDE}{groups}{computed}{weights}"
        f"{chunk_macros(kernel, constants, narrow=narrow)}{kernel.functions}{MACROS}"
        f"{_RAW if raw else ''}{_EIGHTS if kernel.loads_eights else ''}{integers.vulkan(kernel, body)}"
        f"{MATRICES + UNITS if kernel.matrix_units else ''}{dot_products.VULKAN if kernel.whole_numbers else ''}"
        f"{_functions(body, reading)}"
        f"layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;\n"
        f"{buffers}\n{'' if raw else raw_as_computed(kernel)}{scalars}{arrays}\nvoid main()\n{body}"
    )


def _functions(body: str, reading: Reading) -> str:
    """Return the functions that are more than a macro, where the kernel calls them."""
    return (_LOG if "LOG(" in body else "") + (_DIVISIONS[reading.texels] if "DIVIDE" in body else "")


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
    order = "volatile " * buffer.in_order
    return (
        f"\nlayout(std430, set = 0, binding = {binding}) {order}readonly buffer Eights_{buffer.name}"
        f" {{ uvec4 eights_{buffer.name}[]; }};\n#define LOAD_RAW8_{buffer.name}(i) eights_{buffer.name}[i]"
    )


def _planes(binding: int, buffer: Buffer, *, raw: bool) -> str:
    name, value = buffer.name, planes_value(buffer)
    load = f"#define LOAD_{name}(i) (FLOAT4({value}))"
    if raw:
        load += f"\n#define LOAD_RAW_{name}(i) uvec2(packHalf2x16({value}.xy), packHalf2x16({value}.zw))"
    declared = f"layout(std430, set = 0, binding = {binding}) readonly restrict buffer Buffer_{name}"
    return f"{declared} {{ float {name}[]; }};\n{load}"


def _buffer(
    binding: int, buffer: Buffer, precision: Precision, texel: Texel, *, raw: bool = False, eights: bool = False
) -> str:
    """A buffer and its accessors; what is read is converted to what the kernel computes in, with `raw` later."""
    computed = "FLOAT4" if buffer.lanes == 4 else "float"
    if texel:
        width = "" if buffer.lanes == 4 else ".x"
        return (
            f"layout({texel}, set = 0, binding = {binding}) readonly restrict uniform imageBuffer {buffer.name};\n"
            f"#define LOAD_{buffer.name}(i) ({computed}(imageLoad({buffer.name}, (i)){width}))"
        )
    if buffer.planes:
        return _planes(binding, buffer, raw=raw)
    is_half = precision in HALF and buffer.storage == "data"
    wide, stored = ("vec4", "f16vec4") if buffer.lanes == 4 else ("float", "float16_t")
    if buffer.storage in _WHOLE:
        element = computed = _WHOLE[buffer.storage] if buffer.lanes == 4 else single_type(buffer.storage)
    else:
        element = stored if is_half else wide
    if raw and is_half and buffer.access == "read" and buffer.lanes == 4:
        return (
            f"layout(std430, set = 0, binding = {binding}) readonly restrict buffer Buffer_{buffer.name}"
            f" {{ uvec2 {buffer.name}[]; }};\n#define LOAD_RAW_{buffer.name}(i) {buffer.name}[i]\n"
            f"#define LOAD_{buffer.name}(i) FROM_RAW({buffer.name}[i])"
            f"{_by_eights(binding, buffer) if eights else ''}"
        )
    name, access = buffer.name, {"read": "readonly ", "write": "writeonly ", "readwrite": ""}[buffer.access]
    load = f"#define LOAD_{name}(i) ({computed}({name}[i]))"
    store = f"#define STORE_{name}(i, v) {name}[i] = {element}(v)"
    accessor = {"read": load, "write": store, "readwrite": f"{load}\n{store}"}[buffer.access]
    access = "volatile " * buffer.in_order + access
    layout = f"layout(std430, set = 0, binding = {binding}) {access}restrict buffer"
    again = ""
    if eights and is_half and buffer.access == "read" and buffer.lanes == 4:
        again = _by_eights(binding, buffer) + f"\n#define LOAD_EIGHT_{name}(i) eights_{name}[i]"
    if eights and is_half and buffer.access == "write" and buffer.lanes == 4:
        again = f"\n{layout} Eights_{name} {{ uvec4 eights_{name}[]; }};\n"
        again += f"#define STORE_RAW8_{name}(i, v) eights_{name}[i] = v"
    return f"{layout} Buffer_{name} {{ {element} {name}[]; }};\n{accessor}{again}"
