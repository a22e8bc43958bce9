"""Functions of expressions in the language of kernels: the same text for OpenCL C and GLSL; `TEXTS` of floats, `_WHOLE`
of whole numbers (the CPU's are in `device_agent/src/backends/cpu/elements/whole.cc`). `gelu` is good for halves
alone (`in_halves`): x where that is positive, less |x| times the normal distribution below -|x|.

`{0}`, `{1}`, `{2}` are names of arguments, `{r}` the result's; a text may have statements of its own before its value.
"""

from __future__ import annotations

from functools import lru_cache
from math import copysign, inf, isclose, pi, sqrt

from kernels.ir.expressions import (
    FIRST_RESULT,
    LETTERS,
    MAX_NUMBERS,
    MAX_OPERANDS,
    Expression,
    Instruction,
    Program,
    program_of,
)
from kernels.ir.programs import whole_value
from kernels.lower.activation import BY_FUNCTION
from kernels.source.kernel import NUMBERS, Number

_TANH_ABOVE = (4.89352455891786e-03, 6.37261928875436e-04, 1.48572235717979e-05, 5.12229709037114e-08,
               -8.60467152213735e-11, 2.00018790482477e-13, -2.76076847742355e-16)  # fmt: skip
_TANH_BELOW = (4.89352518554385e-03, 2.26843463243900e-03, 1.18534705686654e-04, 1.19825839466702e-06)
_ERF_ABOVE = (-1.60960333262415e-02, -2.95459980854025e-03, -7.34990630326855e-04, -5.69250639462346e-05,
              -2.10102402082508e-06, 2.77068142495902e-08, -2.72614225801306e-10)  # fmt: skip
_ERF_BELOW = (-1.42647390514189e-02, -7.37332916720468e-03, -1.68282697438203e-03, -2.13374055278905e-04,
              -1.45660718464996e-05)  # fmt: skip
"""Rational approximations as in Eigen, good to the last bits of fp32: coefficients of powers of x * x."""
_GELU_MOST = 6.0
_GELU = (-1.00000751, -1.15103662, -0.459170491, -0.0530518703, 0.00794232264, -0.000748435385, 3.24460925e-05)
"""log2 of the normal distribution below -z, z up to 6, as a polynomial: x times it is 5e-6 of itself off, or of the
least half that is not denormal (fitted by linear programming; below -6 it is nothing to a half)."""
_ROUNDING = 1e-6
"""The difference of equal numbers of two exporters."""
_ASIN = (1.6666752422e-01, 7.4953002686e-02, 4.5470025998e-02, 2.4181311049e-02, 4.2163199048e-02)
_ATAN = (-3.33329491539e-01, 1.99777106478e-01, -1.38776856032e-01, 8.05374449538e-02)
"""Coefficients of Cephes' asinf and atanf. Vulkan lets a driver be 4096 units in the last place off; Mesa's asin is
5e-5 off."""


def _series(coefficients: tuple[float, ...]) -> str:
    """Horner's scheme in `{r}_z`."""
    text = number(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        text = f"MAD({text}, {{r}}_z, {number(coefficient)})"
    return text


def number(value: float) -> str:
    """A literal."""
    if value in (inf, -inf):
        return "LOWEST" if value < 0 else "(-LOWEST)"
    if value != value:
        return "(LOWEST - LOWEST)"
    return f"({value!r}f)" if copysign(1, value) < 0 else f"{value!r}f"


def _rational(most: float, above: tuple[float, ...], below: tuple[float, ...]) -> tuple[str, str]:
    clamped = f"({{0}} > {most}f ? {most}f : {{0}} < -{most}f ? -{most}f : {{0}})"
    steps = (
        f"const float {{r}}_x = {clamped}; const float {{r}}_z = {{r}}_x * {{r}}_x; "
        f"const float {{r}}_p = {_series(above)}; const float {{r}}_q = {_series(below)};"
    )
    return steps, "{r}_x * {r}_p / {r}_q"


_ARC = (
    "const float {r}_m = {0} < 0.0f ? -{0} : {0}; const float {r}_h = {r}_m > 0.5f ? 1.0f : 0.0f; "
    "const float {r}_z = {r}_h > 0.0f ? 0.5f - 0.5f * {r}_m : {r}_m * {r}_m; "
    "const float {r}_b = {r}_h > 0.0f ? SQRT({r}_z) : {r}_m; "
    f"const float {{r}}_p = MAD({{r}}_b * {{r}}_z, {_series(_ASIN)}, {{r}}_b);"
)
"""asin of |x|, or half of what it lacks to a right angle where |x| is large."""
_ARC_TANGENT = (
    "const float {r}_m = {0} < 0.0f ? -{0} : {0}; const float {r}_h = {r}_m > 2.41421356f ? 1.0f : 0.0f; "
    "const float {r}_g = {r}_m > 0.41421356f ? 1.0f : 0.0f; "
    "const float {r}_b = {r}_h > 0.0f ? DIVIDE(-1.0f, {r}_m) : {r}_g > 0.0f ? "
    "DIVIDE(({r}_m - 1.0f), ({r}_m + 1.0f)) : {r}_m; const float {r}_z = {r}_b * {r}_b; "
    f"const float {{r}}_s = MAD({{r}}_b * {{r}}_z, {_series(_ATAN)}, {{r}}_b); "
    f"const float {{r}}_p = {{r}}_h > 0.0f ? {number(pi / 2)} + {{r}}_s : {{r}}_g > 0.0f ? "
    f"{number(pi / 4)} + {{r}}_s : {{r}}_s;"
)
_POWER = (
    "const float {r}_s = {0} < 0.0f ? -{0} : {0}; const float {r}_w = {1} * 0.5f; "
    "const float {r}_g = ({r}_s > 1.0f) == ({1} > 0.0f) ? -LOWEST : 0.0f; "
    "const float {r}_m = {1} == 0.0f || {0} == 1.0f ? 1.0f : IS_NAN1({0}) || IS_NAN1({1}) ? {0} + {1} : "
    "{r}_s == 0.0f || {r}_s == -LOWEST ? {r}_g : {1} == -LOWEST || {1} == LOWEST ? ({r}_s == 1.0f ? 1.0f : {r}_g) : "
    "{1} == 1.0f ? {r}_s : {1} == 2.0f ? {r}_s * {r}_s : {1} == 0.5f ? SQRT({r}_s) : POW({r}_s, {1});"
)
"""Powers of |a|: kernels decide what is not finite, for drivers differ in it. {r}_g: where a power goes without end."""
_FLOAT16 = (
    "const uint {r}_u = TO_BITS1({0}); const uint {r}_m = {r}_u & 0x7fffffffu; "
    f"const float {{r}}_f = ROUND(FROM_BITS1({{r}}_m) * {number(2.0**24)}) * {number(2.0**-24)}; "
    "const uint {r}_h = {r}_m < 0x38800000u ? TO_BITS1({r}_f) : {r}_m < 0x477ff000u ? "
    "({r}_m + 0xfffu + (({r}_m >> 13) & 1u)) & 0xffffe000u : {r}_m > 0x7f800000u ? {r}_m : 0x7f800000u;"
)
"""Rounding to the nearest half: of small ones, which are denormal, by their last place; beyond 65520 it is infinite."""
TEXTS: dict[str, tuple[str, str]] = {
    "add": ("", "{0} + {1}"),
    "sub": ("", "{0} - {1}"),
    "mul": ("", "{0} * {1}"),
    "div": ("", "DIVIDE({0}, {1})"),
    "min": ("", "({0} < {1} || IS_NAN1({0})) ? {0} : {1}"),
    "max": ("", "({0} > {1} || IS_NAN1({0})) ? {0} : {1}"),
    "pow": (
        _POWER,
        "(TO_BITS1({0}) >> 31) == 0u || IS_NAN1({0}) ? {r}_m : {1} != floor({1}) ? "
        "({r}_s == 0.0f || {r}_s == -LOWEST ? {r}_m : (LOWEST - LOWEST)) : {r}_w == floor({r}_w) ? {r}_m : -{r}_m",
    ),
    "less": ("", "{0} < {1} ? 1.0f : 0.0f"),
    "equal": ("", "{0} == {1} ? 1.0f : 0.0f"),
    "select": ("", "{0} != 0.0f ? {1} : {2}"),
    "neg": ("", "-{0}"),
    "abs": ("", "{0} < 0.0f ? -{0} : {0}"),
    "exp": ("", "EXP({0})"),
    "log": ("", "LOG({0})"),
    "sqrt": ("", "SQRT({0})"),
    "floor": ("", "floor({0})"),
    "sin": ("", "sin({0})"),  # Vulkan says how exact between -pi and pi; Mesa's is -1 or 1 of large numbers
    "cos": ("", "cos({0})"),
    "tan": ("", "tan({0})"),
    "asin": (
        f"{_ARC} const float {{r}}_q = {{r}}_h > 0.0f ? {number(pi / 2)} - 2.0f * {{r}}_p : {{r}}_p;",
        "{0} < 0.0f ? -{r}_q : {r}_q",
    ),
    "acos": (
        _ARC,
        f"{{r}}_h > 0.0f ? ({{0}} < 0.0f ? {number(pi)} - 2.0f * {{r}}_p : 2.0f * {{r}}_p) : "
        f"{{0}} < 0.0f ? {number(pi / 2)} + {{r}}_p : {number(pi / 2)} - {{r}}_p",
    ),
    "atan": (_ARC_TANGENT, "{0} < 0.0f ? -{r}_p : {r}_p"),
    "tanh": _rational(7.90531110763549805, _TANH_ABOVE, _TANH_BELOW),
    "erf": _rational(4.0, _ERF_ABOVE, _ERF_BELOW),
    "gelu": (
        f"const float {{r}}_m = ABS1({{0}}); const float {{r}}_z = min({{r}}_m, {_GELU_MOST}f); "
        f"const float {{r}}_e = exp2({_series(_GELU)});",
        "MAD(-{r}_z, {r}_e, MAD(0.5f, {r}_m, 0.5f * {0}))",
    ),
    "round": ("", "ROUND({0})"),
    "float16": (_FLOAT16, "FROM_BITS1({r}_h | ({r}_u & 0x80000000u))"),
    "bfloat16": (
        "const uint {r}_u = TO_BITS1({0}); const uint {r}_m = {r}_u & 0x7fffffffu;",
        "{r}_m > 0x7f800000u ? {0} : FROM_BITS1(({r}_u + 0x7fffu + (({r}_u >> 16) & 1u)) & 0xffff0000u)",
    ),
}
_DIVISOR = "const {t} {r}_d = {1} == 0 || {1} == -1 ? {T}(1) : {1};"
"""A divisor that no processor stops at."""
_POWERS = (
    "{u} {r}_p = {U}(1), {r}_x = {U}({0}); "
    "for ({u} {r}_n = {U}({1} < 0 ? {T}(0) : {1}); {r}_n != {U}(0); {r}_n = {r}_n >> 1) "
    "{{ if (({r}_n & {U}(1)) != {U}(0)) {r}_p = {r}_p * {r}_x; {r}_x = {r}_x * {r}_x; }}"
)
_WHOLE: dict[str, tuple[str, str]] = {
    "add": ("", "{T}({U}({0}) + {U}({1}))"),
    "sub": ("", "{T}({U}({0}) - {U}({1}))"),
    "mul": ("", "{T}({U}({0}) * {U}({1}))"),
    "div": (_DIVISOR, "{1} == 0 ? {T}(0) : {1} == -1 ? {T}({U}(0) - {U}({0})) : {0} / {r}_d"),
    "min": ("", "{0} < {1} ? {0} : {1}"),
    "max": ("", "{0} > {1} ? {0} : {1}"),
    "pow": (
        _POWERS,
        "{1} >= 0 ? {T}({r}_p) : {0} == 1 || ({0} == -1 && ({1} & {T}(1)) == 0) ? {T}(1) : "
        "{0} == -1 ? {T}(-1) : {T}(0)",
    ),
    "less": ("", "{0} < {1} ? {T}(1) : {T}(0)"),
    "equal": ("", "{0} == {1} ? {T}(1) : {T}(0)"),
    "select": ("", "{0} != 0 ? {1} : {2}"),
    "neg": ("", "{T}({U}(0) - {U}({0}))"),
    "abs": ("", "{0} < 0 ? {T}({U}(0) - {U}({0})) : {0}"),
    "remainder": (_DIVISOR, "{0} - {0} / {r}_d * {r}_d"),
    "shift_left": ("", "{1} < 0 || {1} >= {bits} ? {T}(0) : {T}({U}({0}) << INT32({1} & {T}({bits} - 1)))"),
    "shift_right": ("", "{1} < 0 || {1} >= {bits} ? {T}(0) : {T}({U}({0}) >> INT32({1} & {T}({bits} - 1)))"),
    "bit_and": ("", "{0} & {1}"),
    "bit_or": ("", "{0} | {1}"),
    "bit_xor": ("", "{0} ^ {1}"),
    "bit_not": ("", "~{0}"),
    "int8": ("", "{T}({U}({0}) << ({bits} - 8)) >> ({bits} - 8)"),
    "int16": ("", "{T}({U}({0}) << ({bits} - 16)) >> ({bits} - 16)"),
    "uint8": ("", "{0} & {T}(255)"),
    "uint16": ("", "{0} & {T}(65535)"),
    "uint32": ("", "{0} & {T}(0xffffffffu)"),
}
"""Numbers wrap around: `{T}` makes one, `{U}` one without a sign, `{t}` and `{u}` are their types. A quotient is cut
off; by 0 it is 0, and so is the remainder. A shift by less than 0 or by all bits gives 0."""
_WORDS: dict[Number, dict[str, str]] = {
    "i32": {"T": "INT32", "U": "UINT32", "t": "int", "u": "uint", "bits": "32"},
    "i64": {"T": "INT64", "U": "UINT64", "t": "LONG", "u": "ULONG", "bits": "64"},
}
_FROM: dict[tuple[Number, Number], str] = {
    ("f32", "i32"): "TO_INT32({0})", ("f32", "i64"): "TO_INT64({0})", ("i32", "f32"): "FLOAT({0})",
    ("i64", "f32"): "FLOAT({0})", ("i32", "i64"): "LENGTHENED({0})", ("i64", "i32"): "INT32({0})",
}  # fmt: skip


def whole_number(value: float, kind: Number) -> str:
    """Return a literal; of what the type does not hold its end."""
    found, bits = whole_value(value, kind), _WORDS[kind]["bits"]
    if kind == "i64":
        return f"INT64({found}L)" if found > -(2**63) else "INT64(UINT64(1) << 63)"
    return f"({found})" if found > -(2**31) else f"INT32(UINT32(1) << {int(bits) - 1})"


def converted(value: str, source: Number, target: Number) -> str:
    """Return a number of one type in another."""
    return value if source == target else _FROM[source, target].format(value)


_EQUAL_TO_ITSELF = ("", "IS_NAN1({0}) ? 0.0f : 1.0f")
"""`a == a`, which a driver may take for true."""
_OF_FINITE = "(TO_BITS1({0}) & 0x7f800000u) == 0x7f800000u ? (LOWEST - LOWEST) : {1}"
"""The second where the first is finite, else NaN."""


def _texts(step: Instruction, numbers: tuple[float, ...]) -> tuple[str, str]:
    """Return a step's texts. A product or quotient with a zero that is written asks bits: Mesa makes 0 of it, whatever
    it is."""
    if step.function == "equal" and step.arguments[0] == step.arguments[1]:
        return _EQUAL_TO_ITSELF
    if step.function in ("mul", "div"):
        registers = (at - MAX_OPERANDS for at in step.arguments)
        first, second = (numbers[at] if 0 <= at < MAX_NUMBERS else None for at in registers)
        if step.function == "mul" and 0 in (first, second):
            return "", _OF_FINITE.format(*(("{1}", "{0}") if first == 0 else ("{0}", "{1}")))
        if second == 0:
            return "", "{0} * " + number(copysign(inf, second))
        if first == 0:
            return "", "{1} == 0.0f || IS_NAN1({1}) ? (LOWEST - LOWEST) : {0}"
    return TEXTS[step.function]


def statements(program: Program, suffix: str = "", kind: Number = "f32") -> tuple[str, str]:
    """Return statements that compute an expression of the values `v_a` and so on, and the name of its result."""

    def name(register: int) -> str:
        if register < MAX_OPERANDS:
            return f"v_{LETTERS[register]}{suffix}"
        if register < FIRST_RESULT:
            value = program.numbers[register - MAX_OPERANDS]
            return number(value) if kind == "f32" else whole_number(value, kind)
        return f"t{register - FIRST_RESULT}{suffix}"

    lines = []
    for index, step in enumerate(program.instructions):
        result = name(FIRST_RESULT + index)
        texts = _texts(step, program.numbers) if kind == "f32" else _WHOLE[step.function]
        words = _WORDS.get(kind, {})
        before, value = (text.format(*map(name, step.arguments), r=result, **words) for text in texts)
        lines.append(f"{before}{' ' if before else ''}const {NUMBERS[kind]} {result} = {value};")
    return "\n    ".join(lines), name(FIRST_RESULT + len(program.instructions) - 1)


@lru_cache
def functions_at_end(*, halves: bool) -> str:
    """Return functions of a vector (`GELU`) and of a number (`GELU1`), and `AT_END`, which chooses among them."""
    text, ends = "", {"": "HARD_SWISH(v)", "1": "HARD_SWISH1(v)"}
    for code, (name, meant) in BY_FUNCTION.items():
        steps, last = statements(program_of(in_halves(meant) if halves else meant))
        own, each = name.upper(), ", ".join(f"{name.upper()}1(v.{lane})" for lane in "xyzw")
        text += f"float {own}1(float v_a) {{\n    {steps}\n    return {last};\n}}\n"
        text += f"WIDE4 {own}(WIDE4 v) {{ return WIDE_VEC4({each}); }}\n"
        ends = {kind: f"code == {code} ? {own}{kind}(v) : {end}" for kind, end in ends.items()}
    return text + "".join(f"#define AT_END{kind}(v, code) ({end})\n" for kind, end in ends.items())


def in_halves(expression: Expression) -> Expression:
    """The same with `gelu`, which only texts of kernels have, in the place of x * (1 + erf(x / sqrt(2))) / 2."""
    if not isinstance(expression, tuple):
        return expression
    found = _of_gelu(expression)
    if found is None:
        return (expression[0], *map(in_halves, expression[1:]))
    x, factor = found
    short = ("gelu", in_halves(x))
    return short if isclose(factor, 1.0, rel_tol=_ROUNDING) else ("mul", factor, short)


def _of_gelu(product: Expression) -> tuple[Expression, float] | None:
    """x of a product of x, 1 + erf(x / sqrt(2)) and numbers, and twice the product of these."""
    number, factors = _factors(product)
    for x, other in (factors, factors[::-1]) if len(factors) == 2 else ():
        match other:
            case ("add", 1.0, ("erf", inner)) | ("add", ("erf", inner), 1.0):
                if isclose(_factors(inner)[0], sqrt(0.5), rel_tol=_ROUNDING) and _factors(inner)[1] == [x]:
                    return x, 2 * number
    return None


def _factors(expression: Expression) -> tuple[float, list[Expression]]:
    """The product of an expression's numbers, and its other factors."""
    match expression:
        case ("mul", first, second):
            (a, before), (b, behind) = _factors(first), _factors(second)
            return a * b, [*before, *behind]
        case ("div", first, float(number)) if number:
            a, before = _factors(first)
            return a / number, before
        case float(number):
            return number, []
    return 1.0, [expression]
