"""Products of whole numbers of 8 bits, four of them in a word of 32 bits: what kernels say in both languages.

`DOT4(a, b, sum)` adds the four products of two words of signed bytes to a sum of 32 bits. By `DOT` (`dot_words`) it is
the API's own (cl_khr_integer_dot_product, SPV_KHR_integer_dot_product), NVIDIA's instruction in OpenCL C, or byte by
byte: all give the same number. Floats are added and multiplied in two roundings, as on the CPU.
"""

from __future__ import annotations

from kernels.options import DotProduct

DOT = {"": 0, "khr": 1, "ptx": 2}


def dot_switch(dot_product: DotProduct) -> dict[str, int]:
    """The constant by which a kernel says how it multiplies."""
    return {"DOT": DOT[dot_product]}


_BOTH = """\
#define WORD(v) (((v).x & 255) | (((v).y & 255) << 8) | (((v).z & 255) << 16) | ((v).w << 24))
"""
"""`IN_STEPS`, below: a quotient by the step, rounded and saturated, less the whole number of 0; NaN gives the least.
A device may be wrong by 2.5 units in the last place where it divides."""
OPENCL = f"""\
#pragma OPENCL FP_CONTRACT OFF
#define INT4 int4
#define INT_SPLAT(a) ((int4)(a))
#define FROM_INT4(v) convert_float4(v)
#define TO_INT4(v) convert_int4(v)
#define BYTES(a) convert_int4(as_char4(a))
#define IN_STEPS(q, zero) rint(fmin(fmax((q), (float4)(-(zero))), (float4)(255.0f - (zero))))
#if defined(FP_FAST_FMAF) || defined(__NV_CL_C_VERSION)
float4 DIVIDE4(float4 a, float b) {{
    const float4 q = a / b, better = fma(fma(-q, (float4)(b), a), (float4)(1.0f / b), q);
    return select(q, better, isfinite(better));
}}
#else
#define DIVIDE4(a, b) ((a) / (b))
#endif
{_BOTH}#if DOT == 1 && defined(__opencl_c_integer_dot_product_input_4x8bit_packed)
#define DOT4(a, b, sum) ((sum) + dot_4x8packed_ss_int(as_uint(a), as_uint(b)))
#elif DOT == 2
int DOT4(int a, int b, int sum) {{
    int found;
    asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(found) : "r"(a), "r"(b), "r"(sum));
    return found;
}}
#else
int DOT4(int a, int b, int sum) {{
    const int4 products = BYTES(a) * BYTES(b);
    return sum + products.x + products.y + products.z + products.w;
}}
#endif
"""
VULKAN_EXTENSION = """\
#if DOT == 1
#extension GL_EXT_spirv_intrinsics : require
#endif
"""
VULKAN = f"""\
#define INT4 ivec4
#define INT_SPLAT(a) ivec4(a)
#define FROM_INT4(v) vec4(v)
#define TO_INT4(v) ivec4(v)
#define BYTE0(a) (((a) << 24) >> 24)
#define BYTE1(a) (((a) << 16) >> 24)
#define BYTE2(a) (((a) << 8) >> 24)
#define BYTE3(a) ((a) >> 24)
#define BYTES(a) ivec4(BYTE0(a), BYTE1(a), BYTE2(a), BYTE3(a))
#define IN_STEPS(q, zero) roundEven(min(max(vec4(-(zero)), (q)), vec4(255.0f - (zero))))
#define DIVIDE4(v, by) vec4(DIVIDE((v).x, by), DIVIDE((v).y, by), DIVIDE((v).z, by), DIVIDE((v).w, by))
{_BOTH}#if DOT == 1
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018], id = 4450)
int signed_dot(int a, int b, spirv_literal int format);
#define DOT4(a, b, sum) ((sum) + signed_dot((a), (b), 0))
#else
int DOT4(int a, int b, int sum) {{
    return sum + BYTE0(a) * BYTE0(b) + BYTE1(a) * BYTE1(b) + BYTE2(a) * BYTE2(b) + BYTE3(a) * BYTE3(b);
}}
#endif
"""
"""OpSDot (4450) of words with four signed bytes (format 0): older compilers of GLSL do not know it by name."""
