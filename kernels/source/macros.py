"""Macros that are the same text in every dialect."""

MACROS = """\
#define ACTIVATE(v) \\
    (activation == 0 ? (v) : activation == 1 ? AT_LEAST((v), WIDE_SPLAT(0.0f)) : activation == 2 \\
        ? AT_MOST(AT_LEAST((v), WIDE_SPLAT(lo)), WIDE_SPLAT(hi)) : activation == 3 \\
        ? WIDE_SPLAT(1.0f) / (WIDE_SPLAT(1.0f) + EXP(-(v))) : AT_LEAST((v), WIDE_SPLAT(lo) * (v)))
#define ACTIVATE1(v) \\
    (activation == 0 ? (v) : activation == 1 ? AT_LEAST1((v), 0.0f) : activation == 2 \\
        ? AT_MOST1(AT_LEAST1((v), lo), hi) : activation == 3 \\
        ? 1.0f / (1.0f + EXP(-(v))) : AT_LEAST1((v), lo * (v)))
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
