"""GLSL for Vulkan 1.1: tunables are `#define`s, the work-group size is specialisation constants 0, 1, 2.

Relaxed precision renders the same text as fp32: SPIR-V lets a driver contract a multiplication and an addition unless
told otherwise, and Vulkan has no other switch that keeps single precision (`mediump` may mean half arithmetic).
"""

from __future__ import annotations

from collections.abc import Mapping

from kernels.source.kernel import BufferSpec, Kernel, derived
from kernels.source.macros import MACROS

PRELUDE = """\
#define FLOAT4 vec4
#define VEC4(a, b, c, d) vec4((a), (b), (c), (d))
#define SPLAT(a) vec4(a)
#define FLOAT(a) float(a)
#define MAD(a, b, c) ((a) * (b) + (c))
#define MAX(a, b) max((a), (b))
#define MIN(a, b) min((a), (b))
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
#define VECTOR vec4
#define VSPLAT(a) vec4(a)
#define LOADV_weight(i) LOAD_weight(i)
#define LOADV_bias(i) LOAD_bias(i)
#define LOADV_FROM_b(i) LOAD_b(i)
#define LOADV_FROM_bias(i) LOAD_bias(i)
#define PART(v, part) (v)
"""
_HALF_EXTENSION = "#extension GL_EXT_shader_16bit_storage : require\n"


def render(kernel: Kernel, tunables: Mapping[str, int], *, half: bool) -> str:
    """Text of the compute shader; `half`: data buffers hold half precision (16-bit storage, single arithmetic)."""
    extensions = _HALF_EXTENSION if half else ""
    tunables = derived(tunables)
    defines = "".join(f"#define {name} {value}\n" for name, value in tunables.items())
    buffers = "\n".join(_buffer(binding, buffer, half) for binding, buffer in enumerate(kernel.buffers))
    members = "".join(f"    int {name};\n" for name in kernel.ints) + "".join(
        f"    float {name};\n" for name in kernel.floats
    )
    arrays = "".join(
        f"shared {'vec4' if array.lanes == 4 else 'float'} {array.name}[{array.size}];\n" for array in kernel.locals
    )
    scalars = f"layout(push_constant) uniform Scalars {{\n{members}}};\n" if members else ""
    return (
        f"#version 450\n{extensions}{defines}{PRELUDE}{MACROS}"
        f"layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;\n"
        f"{buffers}\n{scalars}{arrays}\nvoid main()\n{kernel.source(tunables)}"
    )


def _buffer(binding: int, buffer: BufferSpec, half: bool) -> str:
    is_half = half and buffer.storage == "data"
    wide, stored = ("vec4", "f16vec4") if buffer.lanes == 4 else ("float", "float16_t")
    element = stored if is_half else wide
    name, access = buffer.name, "readonly" if buffer.access == "read" else "writeonly"
    accessor = (
        f"#define LOAD_{name}(i) ({wide}({name}[i]))"
        if buffer.access == "read"
        else f"#define STORE_{name}(i, v) {name}[i] = {element}(v)"
    )
    layout = f"layout(std430, set = 0, binding = {binding}) {access} restrict buffer"
    return f"{layout} Buffer_{name} {{ {element} {name}[]; }};\n{accessor}"
