"""Macros that are the same text in every dialect."""

MACROS = """\
#define ACTIVATE(v) \\
    (activation == 0 ? (v) : activation == 1 ? MAX((v), SPLAT(0.0f)) : activation == 2 \\
        ? MIN(MAX((v), SPLAT(lo)), SPLAT(hi)) : activation == 3 \\
        ? SPLAT(1.0f) / (SPLAT(1.0f) + EXP(-(v))) : MAX((v), SPLAT(lo) * (v)))
#define ACTIVATE1(v) \\
    (activation == 0 ? (v) : activation == 1 ? MAX((v), 0.0f) : activation == 2 \\
        ? MIN(MAX((v), lo), hi) : activation == 3 \\
        ? 1.0f / (1.0f + EXP(-(v))) : MAX((v), lo * (v)))
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
