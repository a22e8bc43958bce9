"""OpenCL C, down to 1.1: constants are `#define`s, the work-group size is given by `-D` options.

Half storage needs no `cl_khr_fp16`: `vload_half` and `vstore_half` are core, and arithmetic is single. Half arithmetic
(`fp16_arithmetic`) needs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kernels.options import HALF, Precision
from kernels.source import dot_products, integers
from kernels.source.chunks import chunk_macros
from kernels.source.kernel import Buffer, Kernel, single_type
from kernels.source.macros import MACROS, planes_value, raw_as_computed
from kernels.source.texts import text_of

_HOME = Path(__file__).parent
PRELUDE = text_of(_HOME / "prelude.cl")
_DIVISION = text_of(_HOME / "division.cl")
_KEEPING_NAN = """\
#define AT_LEAST(v, least) ((v) < (least) ? (least) : (v))
#define AT_MOST(v, most) ((v) > (most) ? (most) : (v))
#define AT_LEAST1(v, least) AT_LEAST(v, least)
#define AT_MOST1(v, most) AT_MOST(v, most)
#define LARGER(a, b) ((((a) > (b)) | isnan(a)) ? (a) : (b))
"""
_IMPRECISE = """\
#define AT_LEAST(v, least) fmax((v), (least))
#define AT_MOST(v, most) fmin((v), (most))
#define AT_LEAST1(v, least) fmax((v), (least))
#define AT_MOST1(v, most) fmin((v), (most))
#define LARGER(a, b) fmax((a), (b))
"""
_COMPUTED = """\
#define SCALAR {scalar}
#define FLOAT4 {scalar}4
#define VEC4(a, b, c, d) (({scalar}4)((a), (b), (c), (d)))
#define SPLAT(a) (({scalar}4)(({scalar})(a)))
#define ZERO (({scalar})0.0f)
#define TO_COMPUTED(a) convert_{scalar}4(a)
"""
_VECTORS = """\
#undef LOADV_weight
#define VECTOR {scalar}{lanes}
#define WIDEV float{lanes}
#define TO_WIDEV(a) convert_float{lanes}(a)
#define WIDE_VSPLAT(a) ((float{lanes})(a))
#define VSPLAT(a) (({scalar}{lanes})(({scalar})(a)))
#define LOADV_weight(i) {load}((i), {pointer}weight)
#define LOADV_bias(i) {load}((i), {pointer}bias)
#define LOADV_FROM_b(i) {load}(0, {pointer}({b}))
#define PART(v, part) PART_##part(v)
#define PART_0(v) (v).s0123
#define PART_1(v) (v).s4567
#define PART_2(v) (v).s89ab
#define PART_3(v) (v).scdef
"""
MATRICES = text_of(_HOME / "matrices.cl")
FRAGMENTS = text_of(_HOME / "fragments.cl")
WARPGROUPS = text_of(_HOME / "warpgroups.cl")
UNITS = text_of(_HOME / "units.cl")
_HALVES = text_of(_HOME / "halves.cl")
_EIGHTS = text_of(_HOME / "eights.cl")
_PLANES = text_of(_HOME / "planes.cl")
_IN_ORDER = """\
#ifdef __NV_CL_C_VERSION
#define IN_ORDER volatile
#else
#define IN_ORDER
#endif
"""
_RAW = """\
#define RAW4 uint2
#define RAW_ZERO ((uint2)(0))
"""
_HALF_EXTENSION = "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n"


def render(kernel: Kernel, constants: Mapping[str, int], precision: Precision = "fp32") -> str:
    """Text of the program."""
    narrow = kernel.is_narrow(precision)
    defines = "".join(f"#define {name} {value}\n" for name, value in constants.items())
    accessors = "\n".join(_accessors(buffer, precision, narrow) for buffer in kernel.buffers)
    arguments = [_argument(buffer, precision, narrow) for buffer in kernel.buffers]
    arguments += ["const Scalars scalars"] if kernel.ints or kernel.floats else []
    joined = ",\n    ".join(arguments)
    computed = _COMPUTED.format(scalar="half" if narrow else "float")
    raw = _raw_as_stored(kernel) if kernel.matrix_units else raw_as_computed(kernel)
    clamps = _IMPRECISE if precision == "imprecise" else _KEEPING_NAN
    return (
        f"{_HALF_EXTENSION if narrow else ''}{defines}{PRELUDE}{clamps}{computed}"
        f"{_HALVES if precision in HALF and not narrow else ''}"
        f"{_vectors(constants, precision, narrow)}{chunk_macros(kernel, constants, narrow=narrow)}"
        f"{kernel.functions}{MACROS}{integers.opencl(kernel, kernel.source(constants))}"
        f"{MATRICES + UNITS + _RAW if kernel.matrix_units else ''}{WARPGROUPS if kernel.warpgroups else ''}"
        f"{FRAGMENTS if kernel.fragments else ''}"
        f"{_IN_ORDER if any(buffer.in_order for buffer in kernel.buffers) else ''}"
        f"{accessors}\n{_eights(kernel, precision)}{raw}\n"
        f"{_DIVISION if 'DIVIDE(' in kernel.source(constants) else ''}"
        f"{dot_products.OPENCL if kernel.whole_numbers else ''}"
        f"{_scalars(kernel)}"
        "__kernel __attribute__((reqd_work_group_size(GROUP_X, GROUP_Y, GROUP_Z)))\n"
        f"void {kernel.name}(\n    {joined})\n{_with_locals(kernel, constants)}"
    )


def _named(kernel: Kernel) -> list[str]:
    return [*(f"int {name}" for name in kernel.ints), *(f"float {name}" for name in kernel.floats)]


def _scalars(kernel: Kernel) -> str:
    """The type of the one argument that holds all scalars: an argument takes the host's time at every launch."""
    fields = "".join(f" {named};" for named in _named(kernel))
    return f"typedef struct {{{fields} }} Scalars;\n" if fields else ""


def _with_locals(kernel: Kernel, constants: Mapping[str, int]) -> str:
    """The body; scalars by their names, and arrays in local memory, which the outermost block of a kernel declares."""
    types = {"computed": "FLOAT4", "f32": "float4", "i32": "int4", "raw8": "uint4"}
    declared = "".join(f"    const {named} = scalars.{named.split()[1]};\n" for named in _named(kernel))
    aligned = " __attribute__((aligned(1024)))" if kernel.warpgroups else ""
    declared += "".join(
        f"    __local {types[array.storage] if array.lanes == 4 else kernel.type_of(array)}"
        f" {array.name}[{array.size}]{aligned};\n"
        for array in kernel.locals
    )
    head, brace, rest = kernel.source(constants).partition("{\n")
    return head + brace + declared + rest


def _raw_as_stored(kernel: Kernel) -> str:
    """`LOAD_RAW_<name>` and `LOAD_RAW8_<name>`: four and eight halves as they lie, and four singles of planes."""
    read = [buffer for buffer in kernel.buffers if buffer.access == "read" and buffer.lanes == 4]
    stored = [
        f"#define LOAD_RAW{words}_{buffer.name}(i) (((__global const uint{size}*){buffer.name})[i])\n"
        for buffer in read
        if not buffer.planes
        for words, size in (("", 2), ("8", 4))
    ]
    rounded = [f"#define LOAD_RAW_{b.name}(i) raw4_of({planes_value(b)})\n" for b in read if b.planes]
    return "".join([*stored, *([_PLANES] if rounded else []), *rounded])


def _eights(kernel: Kernel, precision: Precision) -> str:
    """`LOAD_EIGHT_<name>`: eight halves as they lie."""
    if not kernel.loads_eights or precision not in HALF:
        return ""
    read = [buffer for buffer in kernel.buffers if buffer.access == "read" and _is_half(buffer, precision)]
    kinds = {buffer.name: "IN_ORDER " * buffer.in_order for buffer in read}
    return _EIGHTS + "".join(
        f"#define LOAD_EIGHT_{name}(i) ((({kind}__global const uint4*){name})[i])\n" for name, kind in kinds.items()
    )


def _vectors(constants: Mapping[str, int], precision: Precision, narrow: bool) -> str:
    """Vectors of `LANES` lanes, for kernels that compute in them."""
    if "LANES" not in constants:
        return ""
    lanes = constants["LANES"]
    load, pointer = f"vload{lanes}", f"(__global const {'half' if narrow else 'float'}*)"
    b = "b + (i)"
    if precision in HALF and not narrow:
        load, pointer, b = f"vload_half{lanes}", "", "b + 4 * (i)"
    scalar = "half" if narrow else "float"
    return _VECTORS.format(lanes=lanes, load=load, pointer=pointer, b=b, scalar=scalar)


_ARITHMETIC: Mapping[Precision, tuple[str, ...]] = {
    "relaxed": ("-cl-mad-enable", "-cl-denorms-are-zero"),
    "imprecise": ("-cl-fast-relaxed-math",),
}
"""The compiler's freedom by level: joined products and sums; and all that, with reordering and finite numbers only."""


def build_options(
    work_group: tuple[int, int, int], *, version: str, precision: Precision = "fp32", by_features: bool = False
) -> str:
    """Options of clBuildProgram. OpenCL C 1.1 where the device knows no more, else 1.2.

    `by_features`: 3.0 where the device knows it, since some compilers have optional functions there only.
    """
    standard = "CL1.1" if version.startswith(("1.0", "1.1")) else "CL1.2"
    standard = "CL3.0" if by_features and version.startswith("3.") else standard
    sizes = [f"-DGROUP_{axis}={size}" for axis, size in zip("XYZ", work_group, strict=True)]
    return " ".join([f"-cl-std={standard}", *sizes, *_ARITHMETIC.get(precision, ())])


def _is_half(buffer: Buffer, precision: Precision) -> bool:
    return precision in HALF and buffer.storage == "data"


def _argument(buffer: Buffer, precision: Precision, narrow: bool) -> str:
    const = "const " if buffer.access == "read" else ""
    vector = "4" if buffer.lanes == 4 and not buffer.planes else ""
    scalar = f"{single_type(buffer.storage)}{vector}"
    if _is_half(buffer, precision):
        scalar = f"half{vector}" if narrow else "half"
    return f"__global {const}{scalar}* restrict {buffer.name}"


def _accessors(buffer: Buffer, precision: Precision, narrow: bool) -> str:
    name, suffix = buffer.name, "4" if buffer.lanes == 4 else ""
    is_half = _is_half(buffer, precision)
    loads, stored = "load_half4" if suffix else "vload_half", f"{name}[i]"
    if buffer.in_order and not is_half:
        stored = f"((IN_ORDER __global const {single_type(buffer.storage)}{suffix}*){name})[i]"
    load = f"{loads}_in_order" if buffer.in_order and suffix else loads
    value = f"{load}((i), {name})" if is_half and not narrow else stored
    value = f"TO_COMPUTED({planes_value(buffer)})" if buffer.planes else value
    load = f"#define LOAD_{name}(i) ({value})"
    if buffer.access == "read":
        return load
    store = f"{name}[i] = {'convert_float4' if narrow and suffix else ''}(v)"
    if is_half:
        store = (
            f"{name}[i] = convert_half{suffix}(v)" if narrow else f"{loads.replace('load', 'store')}((v), (i), {name})"
        )
    both = f"{load}\n" if buffer.access == "readwrite" else ""
    return f"{both}#define STORE_{name}(i, v) {store}"
