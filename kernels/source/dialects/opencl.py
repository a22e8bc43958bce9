"""OpenCL C, down to 1.1: constants are `#define`s, the work-group size is given by `-D` options.

Half storage needs no `cl_khr_fp16`: `vload_half` and `vstore_half` are core, and arithmetic is single. Half arithmetic
(`fp16_arithmetic`) needs it.
"""

from __future__ import annotations

from collections.abc import Mapping

from kernels.options import HALF, Precision
from kernels.source import whole_numbers
from kernels.source.chunks import chunk_macros
from kernels.source.kernel import Buffer, Kernel
from kernels.source.macros import MACROS, buffer_accessors_at, image_accessors, raw_as_computed

PRELUDE = """\
#define WIDE4 float4
#define WIDE_SPLAT(a) ((float4)(a))
#define WIDE_VEC4(a, b, c, d) ((float4)((a), (b), (c), (d)))
#define TO_WIDE4(a) convert_float4(a)
#define FLOAT(a) ((float)(a))
#define TO_INT(a) ((int)(a))
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define MAD(a, b, c) fma((a), (b), (c))
#else
#define MAD(a, b, c) mad((a), (b), (c))
#endif
#define MAX(a, b) fmax((a), (b))
#define LOWEST (-INFINITY)
#define LOG(a) log(a)
#define IS_NAN1(a) isnan(a)
#define IMAX(a, b) max((a), (b))
#define IMIN(a, b) min((a), (b))
#define EXP(a) exp(a)
#define SQRT(a) sqrt(a)
#define ROUND(a) rint(a)
#define TO_BITS1(a) as_uint(a)
#define FROM_BITS1(a) as_float(a)
#define POW(a, b) pow((a), (b))
#define GLOBAL_ID(d) ((int)get_global_id(d))
#define GROUP_ID(d) ((int)get_group_id(d))
#define LOCAL_ID(d) ((int)get_local_id(d))
#define LOCAL_SIZE(d) ((int)get_local_size(d))
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define SET_LANE(array, i, lane, v) (((__local SCALAR*)(array))[(i) * 4 + (lane)] = (v))
#define LEAVE_IF(condition) if (condition) return
#define LEFT 0
#define FETCH_WEIGHTS(at) const int weights_at = (at)
#define WEIGHT(n) LOADV_weight(weights_at + (n))
#define LOADV_weight(i) LOAD_weight(i)
"""
_DIVISION = """\
#if defined(FP_FAST_FMAF) || defined(__NV_CL_C_VERSION)
float DIVIDE(float a, float b) {
    const float q = a / b, better = fma(fma(-q, b, a), 1.0f / b, q);
    return isfinite(better) ? better : q;
}
#else
#define DIVIDE(a, b) ((a) / (b))
#endif
"""
"""A device may be wrong by 2.5 units in the last place (docs/decisions/0114)."""
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
#define LOADV_FROM_bias(i) {load}(0, {pointer}({bias}))
#define PART(v, part) PART_##part(v)
#define PART_0(v) (v).s0123
#define PART_1(v) (v).s4567
#define PART_2(v) (v).s89ab
#define PART_3(v) (v).scdef
"""
MATRICES = """\
#define MATRIX_LEFT uint4
#define MATRIX_RIGHT uint4
#define MATRIX_SUM float8
#define NO_SUM ((float8)(0.0f))
#define LOAD_LEFT(m, array, at, pitch) m = four_matrices((array) + (at) + LANE % 16 * (pitch) + LANE / 16)
#define LOAD_COLUMNS(m, array, at, pitch) \\
    m = four_matrices((array) + (at) + (LANE % 8 + LANE / 16 * 8) * (pitch) + LANE / 8 % 2)
#define LOAD_ROWS(m, array, at, pitch) m = four_turned((array) + (at) + LANE % 16 * (pitch) + LANE / 16)
#define STORE_MATRIX(m, array, at, pitch) put_sum(m, (__local float2*)((array) + (at)), 2 * (pitch), LANE)
#define MULTIPLY_ADD(a, b, sum) multiply_add(a, b, sum)
#define NEAR uint4
#define LOAD_NEAR(near, at) near = RIGHT_AT((at) + LANE)
#define FRAGMENT(m, near) m = near
#define LEFT_OF(m, a, b, c, d) m = (uint4)((a), (b), (c), (d))
#define SUM_UP(m) (m).s0145
#define SUM_LOW(m) (m).s2367
#define SCALE_SUM(m, up, low) m *= (float8)((up), (up), (low), (low), (up), (up), (low), (low))
#define FROM_BITS(v) as_float4(v)
#define TO_BITS(v) as_uint4(v)
#define RAW8 uint4
#define RAW8_ZERO ((uint4)(0))
#define SUBGROUP (LOCAL_ID(0) / WIDTH)
#define LANE (LOCAL_ID(0) % WIDTH)
#define SUBGROUP_BARRIER __asm__ volatile("bar.warp.sync 0xffffffff;" : : : "memory")
#define LOAD_FOUR(name, way) \\
    uint4 name(__local const uint4* from) { \\
        uint a, b, c, d; \\
        __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4" way ".shared.b16 {%0, %1, %2, %3}, [%4];" \\
            : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"((uint)(size_t)from) : "memory"); \\
        return (uint4)(a, b, c, d); \\
    }
LOAD_FOUR(four_matrices, "")
LOAD_FOUR(four_turned, ".trans")
float4 multiply_half(uint4 a, uint2 b, float4 sum) {
    float x = sum.x, y = sum.y, z = sum.z, w = sum.w;
    __asm__("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
        " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(x), "+f"(y), "+f"(z), "+f"(w) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
    return (float4)(x, y, z, w);
}
float8 multiply_add(uint4 a, uint4 b, float8 sum) {
    return (float8)(multiply_half(a, b.xy, sum.lo), multiply_half(a, b.zw, sum.hi));
}
void put_sum(float8 m, __local float2* to, int pitch, int lane) {
    to += lane / 4 * pitch + lane % 4;
    to[0] = m.s01;
    to[4] = m.s45;
    to[8 * pitch] = m.s23;
    to[8 * pitch + 4] = m.s67;
}
"""
"""Matrices of 16 x 16 by NVIDIA's own instructions (PTX ISA: `ldmatrix`, `mma.m16n8k16`), which its
compiler of OpenCL C takes as inline assembly. Which work-item holds what is part of their definition."""
FRAGMENTS = """\
#define EXCHANGE(to, v, mask) \\
    __asm__ volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;" : "=f"(to) : "f"(v), "n"(mask))
#define EXP2(a) native_exp2(a)
uint TWO_HALVES(float a, float b) {
    uint both;
    __asm__("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(b), "f"(a));
    return both;
}
"""
"""Of a 16 x 8 sum four neighbours have rows i and i + 8, each of them columns 2 j and 2 j + 1; of the left operand the
same, and the columns 8 later; of the right one rows 2 j, 2 j + 1, 2 j + 8 and 2 j + 9 of column i (`mma.m16n8k16`)."""
WARPGROUPS = """\
#define HOPPER(instruction) __asm__ volatile("//sm_90a " #instruction ";" : : : "memory")
#define FENCE HOPPER(fence.proxy.async.shared::cta)
#define SWIZZLED(at, span) ((at) ^ ((at) >> 3 & ((span) - 16)))
#define COPY(to, from, there) \\
    __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" \\
        : : "r"((uint)(to)), "l"((ulong)(from)), "r"((there) ? 16 : 0) : "memory")
#define COPY_HALF(to, from, there) \\
    __asm__ volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" \\
        : : "r"((uint)(to)), "l"((ulong)(from)), "r"((there) ? 8 : 0) : "memory")
#if EIGHTS_A
#define COPY_A(to, from, there) COPY(to, from, there)
#else
#define COPY_A(to, from, there) COPY_HALF(to, from, there); COPY_HALF((to) + 8, (from) + 8, there)
#endif
#define COMMIT __asm__ volatile("cp.async.commit_group;" : : : "memory")
#define WAIT_FOR_COPIES __asm__ volatile("cp.async.wait_group %0;" : : "n"(STAGES - AHEAD - 1) : "memory")
#if AHEAD > 1
#define WAIT_FOR_PRODUCTS HOPPER(wgmma.wait_group.sync.aligned 1)
#else
#define WAIT_FOR_PRODUCTS HOPPER(wgmma.wait_group.sync.aligned 0)
#endif
#define WAIT_FOR_ALL_PRODUCTS HOPPER(wgmma.wait_group.sync.aligned 0)
#define SUM(f, j, n) sums##f[4 * j + n]
#define WARP_BARRIER __asm__ volatile("bar.warp.sync 0xffffffff;" : : : "memory")
"""
"""Instructions of compute capability 9.0 are comments to the driver's compiler; the agent takes the marks out, and has
the program compiled for `sm_90a` (docs/decisions/0124)."""
UNITS = """\
#define ROLLED
#define IN_REGISTERS 0
#define SPREAD(line, n) ((line) / 8 * 8 + (line) % (n) * (8 / (n)) + (line) % 8 / (n))
#define PUT_HALVES(array, at, a, b) \\
    PUT_HALF4(a, 0, (array) + (at)); PUT_HALF4(b, 1, (array) + (at))
#define RAW8_OF(a, b, c, d) ((uint4)((a), (b), (c), (d)))
#define RAW8_PAIR(a, b) ((uint4)((a), (b)))
#define LOW_HALVES(a, b) (((a) & 0xffffu) | (b) << 16)
#define HIGH_HALVES(a, b) ((a) >> 16 | ((b) & 0xffff0000u))
#if TURNED
#define LOAD_RIGHT(m, array, at, pitch) LOAD_COLUMNS(m, array, at, pitch)
#else
#define LOAD_RIGHT(m, array, at, pitch) LOAD_ROWS(m, array, at, pitch)
#endif
"""
"""What follows from `MATRICES`."""
_HALVES = """\
#ifdef __NV_CL_C_VERSION
float half_of(ushort bits) {
    float x;
    __asm__("{ .reg .f16 h; mov.b16 h, %1; cvt.f32.f16 %0, h; }" : "=f"(x) : "h"(bits));
    return x;
}
ushort bits_of(float x) {
    ushort bits;
    __asm__("{ .reg .f16 h; cvt.rn.f16.f32 h, %1; mov.b16 %0, h; }" : "=h"(bits) : "f"(x));
    return bits;
}
#define HALVES_OF(v) ((ushort4)(bits_of((v).x), bits_of((v).y), bits_of((v).z), bits_of((v).w)))
float4 load_half4(int i, __global const half* from) {
    const ushort4 bits = ((__global const ushort4*)from)[i];
    return (float4)(half_of(bits.x), half_of(bits.y), half_of(bits.z), half_of(bits.w));
}
void store_half4(float4 v, int i, __global half* to) { ((__global ushort4*)to)[i] = HALVES_OF(v); }
#define PUT_HALF4(v, i, to) (((__local ushort4*)(to))[i] = HALVES_OF(v))
#else
#define load_half4(i, from) vloada_half4((i), (from))
#define store_half4(v, i, to) vstorea_half4((v), (i), (to))
#define PUT_HALF4(v, i, to) vstorea_half4((v), (i), (__local half*)(to))
#endif
"""
"""Four halves lie at a multiple of eight bytes. NVIDIA's compiler makes four accesses of two bytes of `vloada_half4`
and `vstorea_half4` (docs/decisions/0124)."""
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
    clamps = _IMPRECISE if precision == "imprecise" else _KEEPING_NAN
    return (
        f"{_HALF_EXTENSION if narrow else ''}{defines}{PRELUDE}{clamps}{computed}"
        f"{_HALVES if precision in HALF and not narrow else ''}"
        f"{_vectors(constants, precision, narrow)}{chunk_macros(kernel, constants, narrow=narrow)}{MACROS}"
        f"{MATRICES + UNITS + _RAW if kernel.matrix_units else ''}{WARPGROUPS if kernel.warpgroups else ''}"
        f"{FRAGMENTS if kernel.fragments else ''}"
        f"{accessors}\n{_raw_as_stored(kernel) if kernel.matrix_units else raw_as_computed(kernel)}\n"
        f"{_DIVISION if 'DIVIDE(' in kernel.source(constants) else ''}"
        f"{whole_numbers.OPENCL if kernel.whole_numbers else ''}"
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
    declared += "".join(
        f"    __local {types[array.storage] if array.lanes == 4 else 'float'} {array.name}[{array.size}]"
        f"{' __attribute__((aligned(1024)))' if kernel.warpgroups else ''};\n"
        for array in kernel.locals
    )
    head, brace, rest = kernel.source(constants).partition("{\n")
    return head + brace + declared + rest


def _raw_as_stored(kernel: Kernel) -> str:
    """`LOAD_RAW_<name>` and `LOAD_RAW8_<name>`: four and eight halves as they lie in memory."""
    return "".join(
        f"#define LOAD_RAW{words}_{buffer.name}(i) (((__global const uint{size}*){buffer.name})[i])\n"
        for buffer in kernel.buffers
        if buffer.access == "read" and buffer.lanes == 4
        for words, size in (("", 2), ("8", 4))
    )


def _vectors(constants: Mapping[str, int], precision: Precision, narrow: bool) -> str:
    """Vectors of `LANES` lanes, for kernels that compute in them."""
    if "LANES" not in constants:
        return ""
    lanes = constants["LANES"]
    load, pointer = f"vload{lanes}", f"(__global const {'half' if narrow else 'float'}*)"
    b, bias = "b + (i)", "bias + (i)"
    if precision in HALF and not narrow:
        load, pointer, b, bias = f"vload_half{lanes}", "", "b + 4 * (i)", "bias + 4 * (i)"
    scalar = "half" if narrow else "float"
    return _VECTORS.format(lanes=lanes, load=load, pointer=pointer, b=b, bias=bias, scalar=scalar)


_ARITHMETIC: Mapping[Precision, tuple[str, ...]] = {
    "relaxed": ("-cl-mad-enable", "-cl-denorms-are-zero"),
    "imprecise": ("-cl-fast-relaxed-math",),
}
"""What a level allows the compiler: joined products and sums; and all that, with reordering and finite numbers only."""


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
    if buffer.image:
        return f"__{buffer.access}_only image2d_t {buffer.name}"
    const = "const " if buffer.access == "read" else ""
    vector = "4" if buffer.lanes == 4 else ""
    scalar = f"{'int' if buffer.storage == 'i32' else 'float'}{vector}"
    if _is_half(buffer, precision):
        scalar = f"half{vector}" if narrow else "half"
    return f"__global {const}{scalar}* restrict {buffer.name}"


def _accessors(buffer: Buffer, precision: Precision, narrow: bool) -> str:
    name, suffix = buffer.name, "4" if buffer.lanes == 4 else ""
    if buffer.image:
        return image_accessors(
            buffer, width=f"get_image_width({name})", pair="((int2)({x}, {y}))",
            load=f"read_imagef({name}, {{at}})", store=f"write_imagef({name}, {{at}}, {{value}})",
        )  # fmt: skip
    is_half = _is_half(buffer, precision)
    loads = "load_half4" if suffix else "vload_half"
    value = f"{loads}((i), {name})" if is_half and not narrow else f"{name}[i]"
    load = f"#define LOAD_{name}(i) ({value})"
    if buffer.access == "read":
        return f"{load}{buffer_accessors_at(buffer)}"
    store = f"{name}[i] = (v)"
    if is_half:
        store = (
            f"{name}[i] = convert_half{suffix}(v)" if narrow else f"{loads.replace('load', 'store')}((v), (i), {name})"
        )
    both = f"{load}\n" if buffer.access == "readwrite" else ""
    return f"{both}#define STORE_{name}(i, v) {store}{buffer_accessors_at(buffer)}"
