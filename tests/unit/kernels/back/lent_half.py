"""Half arithmetic on an OpenCL device without `cl_khr_fp16`: PoCL's compiler knows the type `_Float16` all the same.

The text of a kernel is kept but for its extension line, so that every product and sum of it is really in half.
"""

from __future__ import annotations

from kernels.plan.model import Bundle

_EXTENSION = b"#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n"
_VECTOR = """\
typedef _Float16 lent{n} __attribute__((ext_vector_type({n}), aligned(2)));
#define half{n} lent{n}
#define convert_half{n}(a) __builtin_convertvector((a), lent{n})
#define convert_float{n}(a) __builtin_convertvector((a), float{n})
#define vload{n}(i, p) (*(__global const lent{n}*)((p) + {n} * (i)))
"""
_LENT = "".join(
    [
        *(_VECTOR.format(n=n) for n in (4, 8, 16)),
        "#define half _Float16\n#define convert_half(a) ((half)(a))\n",
        *(f"#define {name}(a, b, c) ((a) * (b) + (c))\n" for name in ("mad", "fma")),
    ]
).encode()


def lend_half(bundle: Bundle) -> Bundle:
    """The plan with the type in place of the extension, where it has any."""
    files = {name: content.replace(_EXTENSION, _LENT) for name, content in bundle.files.items()}
    return Bundle(bundle.plan, files)
