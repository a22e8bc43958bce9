"""OpenCL C, down to 1.1: tunables are `#define`s, the work-group size is given by `-D` options.

Half storage needs no `cl_khr_fp16`: `vload_half` and `vstore_half` are core; arithmetic is single.
"""

from __future__ import annotations

from collections.abc import Mapping

from kernels.source.kernel import BufferSpec, Kernel, derived
from kernels.source.macros import MACROS

PRELUDE = """\
#define FLOAT4 float4
#define VEC4(a, b, c, d) ((float4)((a), (b), (c), (d)))
#define SPLAT(a) ((float4)(a))
#define FLOAT(a) ((float)(a))
#define MAD(a, b, c) mad((a), (b), (c))
#define MAX(a, b) fmax((a), (b))
#define MIN(a, b) fmin((a), (b))
#define IMAX(a, b) max((a), (b))
#define IMIN(a, b) min((a), (b))
#define EXP(a) exp(a)
#define SQRT(a) sqrt(a)
#define POW(a, b) pow((a), (b))
#define GLOBAL_ID(d) ((int)get_global_id(d))
#define GROUP_ID(d) ((int)get_group_id(d))
#define LOCAL_ID(d) ((int)get_local_id(d))
#define LOCAL_SIZE(d) ((int)get_local_size(d))
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define SET_LANE(array, i, lane, v) (((__local float*)(array))[(i) * 4 + (lane)] = (v))
"""
_VECTORS = """\
#define VECTOR float{lanes}
#define VSPLAT(a) ((float{lanes})(a))
#define LOADV_weight(i) {load}((i), {pointer}weight)
#define LOADV_bias(i) {load}((i), {pointer}bias)
#define LOADV_FROM_b(i) {load}(0, {pointer}({b}))
#define LOADV_FROM_bias(i) {load}(0, {pointer}({bias}))
#define PART(v, part) PART_##part(v)
#define PART_0(v) (v).s0123
#define PART_1(v) (v).s4567
#define PART_2(v) (v).s89ab
#define PART_3(v) (v).scdef
"""


def render(kernel: Kernel, tunables: Mapping[str, int], *, half: bool) -> str:
    """Text of the program; `half`: data buffers hold half precision."""
    tunables = derived(tunables)
    defines = "".join(f"#define {name} {value}\n" for name, value in tunables.items())
    accessors = "\n".join(_accessors(buffer, half) for buffer in kernel.buffers)
    arguments = [_argument(buffer, half) for buffer in kernel.buffers]
    arguments += [f"int {name}" for name in kernel.ints] + [f"float {name}" for name in kernel.floats]
    joined = ",\n    ".join(arguments)
    return (
        f"{defines}{PRELUDE}{_vectors(tunables, half)}{MACROS}{accessors}\n\n"
        "__kernel __attribute__((reqd_work_group_size(GROUP_X, GROUP_Y, GROUP_Z)))\n"
        f"void {kernel.name}(\n    {joined})\n{_with_locals(kernel, tunables)}"
    )


def _with_locals(kernel: Kernel, tunables: Mapping[str, int]) -> str:
    """The body; arrays in local memory are declared in the kernel's outermost block."""
    arrays = "".join(
        f"    __local float{'4' if array.lanes == 4 else ''} {array.name}[{array.size}];\n" for array in kernel.locals
    )
    source = kernel.source(tunables)
    if not arrays:
        return source
    head, brace, rest = source.partition("{\n")
    return head + brace + arrays + rest


def _vectors(tunables: Mapping[str, int], half: bool) -> str:
    """Vectors of `LANES` lanes, for kernels that compute in them."""
    if "LANES" not in tunables:
        return ""
    lanes = tunables["LANES"]
    load, pointer = (f"vload_half{lanes}", "") if half else (f"vload{lanes}", "(__global const float*)")
    b, bias = ("b + 4 * (i)", "bias + 4 * (i)") if half else ("b + (i)", "bias + (i)")
    return _VECTORS.format(lanes=lanes, load=load, pointer=pointer, b=b, bias=bias)


def build_options(work_group: tuple[int, int, int], *, version: str, relaxed: bool) -> str:
    """Options of clBuildProgram. OpenCL C 1.1 where the device knows no more, else 1.2."""
    standard = "CL1.1" if version.startswith(("1.0", "1.1")) else "CL1.2"
    sizes = [f"-DGROUP_{axis}={size}" for axis, size in zip("XYZ", work_group, strict=True)]
    return " ".join([f"-cl-std={standard}", *sizes, *(["-cl-fast-relaxed-math"] if relaxed else [])])


def _is_half(buffer: BufferSpec, half: bool) -> bool:
    return half and buffer.storage == "data"


def _argument(buffer: BufferSpec, half: bool) -> str:
    const = "const " if buffer.access == "read" else ""
    scalar = "half" if _is_half(buffer, half) else "float4" if buffer.lanes == 4 else "float"
    return f"__global {const}{scalar}* restrict {buffer.name}"


def _accessors(buffer: BufferSpec, half: bool) -> str:
    name, suffix = buffer.name, "4" if buffer.lanes == 4 else ""
    if buffer.access == "read":
        value = f"vload_half{suffix}((i), {name})" if _is_half(buffer, half) else f"{name}[i]"
        return f"#define LOAD_{name}(i) ({value})"
    store = f"vstore_half{suffix}((v), (i), {name})" if _is_half(buffer, half) else f"{name}[i] = (v)"
    return f"#define STORE_{name}(i, v) {store}"
