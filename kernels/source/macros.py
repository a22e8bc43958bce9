"""Macros that are the same text in every dialect."""

MACROS = """\
#define ACTIVATE(v) \\
    (activation == 0 ? (v) : activation == 1 ? MAX((v), SPLAT(0.0f)) : activation == 2 \\
        ? MIN(MAX((v), SPLAT(lo)), SPLAT(hi)) : SPLAT(1.0f) / (SPLAT(1.0f) + EXP(-(v))))
#define ACTIVATE1(v) \\
    (activation == 0 ? (v) : activation == 1 ? MAX((v), 0.0f) : activation == 2 \\
        ? MIN(MAX((v), lo), hi) : 1.0f / (1.0f + EXP(-(v))))
"""
