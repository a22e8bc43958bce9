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
"""
