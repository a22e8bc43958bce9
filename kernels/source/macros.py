"""Macros that are the same text in every dialect."""

from __future__ import annotations

from .kernel import Buffer, Kernel

IN_A_ROW = 128
"""Numbers that are added up one after the other at most: sums of longer rows are sums of sums, whose rounding does
not grow with the length (blocked summation, as in `chunks.py`)."""

MACROS = (
    f"#define IN_A_ROW {IN_A_ROW}\n"
    + """\
#define ACTIVATED(v, code, lo, hi) \\
    (code == 0 ? (v) : code == 1 ? AT_LEAST((v), WIDE_SPLAT(0.0f)) : code == 2 \\
        ? AT_MOST(AT_LEAST((v), WIDE_SPLAT(lo)), WIDE_SPLAT(hi)) : code == 3 \\
        ? WIDE_SPLAT(1.0f) / (WIDE_SPLAT(1.0f) + EXP(-(v))) : code == 4 \\
        ? AT_LEAST((v), WIDE_SPLAT(lo) * (v)) : code == 5 \\
        ? HARD(WIDE_SPLAT(lo) * (v) + WIDE_SPLAT(hi)) : code == 8 \\
        ? (v) * (WIDE_SPLAT(1.0f) / (WIDE_SPLAT(1.0f) + EXP(-(v)))) : AT_END(v, code))
#define HARD_SWISH(v) ((v) * HARD(WIDE_SPLAT(1.0f / 6.0f) * (v) + WIDE_SPLAT(0.5f)))
#define ACTIVATE(v) ACTIVATED(v, activation, lo, hi)
#define HARD(v) AT_MOST(AT_LEAST((v), WIDE_SPLAT(0.0f)), WIDE_SPLAT(1.0f))
#define ACTIVATE1(v) \\
    (activation == 0 ? (v) : activation == 1 ? AT_LEAST1((v), 0.0f) : activation == 2 \\
        ? AT_MOST1(AT_LEAST1((v), lo), hi) : activation == 3 \\
        ? 1.0f / (1.0f + EXP(-(v))) : activation == 4 \\
        ? AT_LEAST1((v), lo * (v)) : activation == 5 \\
        ? HARD1(lo * (v) + hi) : activation == 8 \\
        ? (v) * (1.0f / (1.0f + EXP(-(v)))) : AT_END1(v, activation))
#define HARD_SWISH1(v) ((v) * HARD1((v) * (1.0f / 6.0f) + 0.5f))
#ifndef AT_END
#define AT_END(v, code) HARD_SWISH(v)
#define AT_END1(v, code) HARD_SWISH1(v)
#endif
#define BESIDE(v, at)
#define BESIDES(v, w, at)
#define HARD1(v) AT_MOST1(AT_LEAST1((v), 0.0f), 1.0f)
#ifdef LAST_LANES
#define TRIM(is_last, v) \\
    if (is_last) { (v).w = 0.0f; if (LAST_LANES < 3) (v).z = 0.0f; if (LAST_LANES < 2) (v).y = 0.0f; }
#define TRIM1(is_last, lane, v) if ((is_last) && (lane) >= LAST_LANES) v = 0.0f;
#else
#define TRIM(is_last, v)
#define TRIM1(is_last, lane, v)
#endif
#ifdef REFLECT
#define INSIDE(i, n) true
#define PLACE(i, n) IMIN(IMAX((i) < 0 ? -(i) : (i) >= (n) ? 2 * ((n) - 1) - (i) : (i), 0), (n) - 1)
#define CLAMPED(i, n) PLACE(i, n)
#else
#define INSIDE(i, n) ((i) >= 0 && (i) < (n))
#define PLACE(i, n) (i)
#define CLAMPED(i, n) IMIN(IMAX((i), 0), (n) - 1)
#endif
"""
)


def planes_value(buffer: Buffer) -> str:
    """Element i of a parameter in planes, in single."""
    planes = [f"{buffer.name}[(i) + {plane} * h * w]" for plane in range(buffer.planes)]
    return f"WIDE_VEC4({', '.join([*planes, *['0.0f'] * (4 - buffer.planes)])})"


def raw_as_computed(kernel: Kernel) -> str:
    """`LOAD_RAW_<name>` and what belongs to it, where values are converted as they are loaded."""
    if not kernel.loads_raw:
        return ""
    loads = "".join(
        f"#define LOAD_RAW_{buffer.name}(i) LOAD_{buffer.name}(i)\n"
        for buffer in kernel.buffers
        if buffer.access == "read" and buffer.lanes == 4
    )
    return f"#define RAW4 FLOAT4\n#define RAW_ZERO SPLAT(0.0f)\n#define FROM_RAW(v) (v)\n{loads}"
