"""Whole numbers of 32 and 64 bits in both languages, for kernels that name them.

`INT32` and so on convert whole numbers, of which the last bits stay, and conditions. `TO_INT32(x)` and `TO_INT64(x)`
are a float's whole part, and the least number of the type where there is none of it, as on the CPU. `LONG` and `ULONG`
are types of 64 bits. `LENGTHENED(a)` is a number of 32 bits in 64: of `int64_t(a) < 1` Mesa makes a comparison of 32
bits that is true or false whatever `a` is (22.3; seen in llvmpipe).
"""

from __future__ import annotations

import re

from .kernel import Kernel

_FLOATS = """\
{type} TO_INT{bits}(float x) {{
    return x >= -{end}f && x < {end}f ? INT{bits}(x) : INT{bits}(UINT{bits}(1) << {last});
}}
"""
_TO_INT32 = _FLOATS.format(type="int", bits=32, end=2.0**31, last=31)
_TO_INT64 = _FLOATS.format(type="LONG", bits=64, end=2.0**63, last=63)
_OPENCL = "#define INT32(a) ((int)(a))\n#define UINT32(a) ((uint)(a))\n"
_OPENCL_WIDE = """\
#define LONG long
#define LONG4 long4
#define ULONG ulong
#define INT64(a) ((long)(a))
#define LENGTHENED(a) ((long)(a))
#define UINT64(a) ((ulong)(a))
"""
_VULKAN = "#define INT32(a) int(a)\n#define UINT32(a) uint(a)\n"
_VULKAN_WIDE = """\
#define LONG int64_t
#define LONG4 i64vec4
#define ULONG uint64_t
#define INT64(a) int64_t(a)
#define LENGTHENED(a) ((int64_t(a) << 32) >> 32)
#define UINT64(a) uint64_t(a)
"""
_WIDE = re.compile(r"\bU?LONG4?\b|INT64\(|LENGTHENED\(")
VULKAN_EXTENSION = "#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require\n"


def is_wide(kernel: Kernel, body: str) -> bool:
    """Return whether a kernel has whole numbers of 64 bits."""
    may_be = "LONG" in body or "INT64(" in body or "LENGTHENED(" in body  # in a hundredth of the expression's time
    return bool(may_be and _WIDE.search(body)) or any(buffer.storage == "i64" for buffer in kernel.buffers)


def opencl(kernel: Kernel, body: str) -> str:
    """Return what a body needs in OpenCL C."""
    return _chosen(_OPENCL, _OPENCL_WIDE, kernel, body)


def vulkan(kernel: Kernel, body: str) -> str:
    """Return what a body needs in GLSL."""
    return _chosen(_VULKAN, _VULKAN_WIDE, kernel, body)


def _chosen(narrow: str, wide: str, kernel: Kernel, body: str) -> str:
    if is_wide(kernel, body):
        return f"{narrow}{wide}{_TO_INT32}{_TO_INT64}"
    return f"{narrow}{_TO_INT32}" if "INT32(" in body else ""
