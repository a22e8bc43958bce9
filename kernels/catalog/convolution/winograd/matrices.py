"""Winograd's minimal filtering: matrices for any tile and window, and their text in kernels.

F(m, r) computes m outputs of a window of r taps with a = m + r - 1 multiplications: Y = At [(G g) * (Bt d)]. The
matrices come from the Toom-Cook construction with points 0, 1, -1, 2, -2, ... and infinity (Lavin and Gray, 2016, give
them for F(2,3) and F(4,3)). With five points these are 0, 3/4, -3/4, 3/2 and -3/2, near the square roots of 1/2 and 2:
they lose half as much as 0, 1, -1, 2 and -2, and fp32 holds all coefficients (Barabasz et al., 2020, discuss points).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from math import prod

import numpy as np
import numpy.typing as npt

_POINTS = tuple(Fraction(point) for point in ("0", "1", "-1", "2", "-2", "1/2", "-1/2"))
_FIVE = tuple(Fraction(point) for point in ("0", "3/4", "-3/4", "3/2", "-3/2"))
_CALL = re.compile(r"TRANSFORM\((\w+), ([^;\n]*?), ([^;\n,]*?)\)\n")
_STORE = re.compile(r"TRANSFORM_STORE\((\w+), ([^;\n]*\)), ([^;\n,]*?)\)\n")

Matrix = list[list[Fraction]]


@lru_cache
def matrices(tile: int, window: int) -> tuple[Matrix, Matrix, Matrix]:
    """Return At (tile, a), G (a, window) and Bt (a, a) as exact fractions; a = tile + window - 1, at most 8."""
    size = tile + window - 1
    points = _FIVE if size - 1 == len(_FIVE) else _POINTS[: size - 1]
    output = [[point**row for point in points] + [Fraction(int(row == tile - 1))] for row in range(tile)]
    filters = [[point**k / _others(points, point) for k in range(window)] for point in points]
    filters.append([Fraction(int(k == window - 1)) for k in range(window)])
    inputs = [_coefficients([p for p in points if p != point], size) for point in points]
    inputs.append(_coefficients(points, size))
    return output, filters, inputs


def transform_filters(weight: npt.NDArray[np.float32], tile: int) -> npt.NDArray[np.float32]:
    """(K, C, r, r) -> (a * a, K, C): G g Gt of every filter, in double precision, rounded once."""
    k, c, window, _ = weight.shape
    g = np.array([[float(value) for value in row] for row in matrices(tile, window)[1]])
    taps = np.ascontiguousarray(weight.transpose(2, 3, 0, 1), np.float64)  # sums over few taps of large arrays
    found = np.empty((len(g), len(g), k, c), np.float32)
    for a, down in enumerate(g):
        row = sum(down[y] * taps[y] for y in range(window))
        for b, along in enumerate(g):
            found[a, b] = sum(along[x] * row[x] for x in range(window))
    return found.reshape(-1, k, c)


def expand(text: str, constants: Mapping[str, int]) -> str:
    """Write out the transforms that a body names.

    `TRANSFORM(INPUT, out[@], in[#])` becomes one assignment for each row of Bt (OUTPUT: of At); `@` is the row, `#` the
    column. In `TRANSFORM_STORE(INPUT, f(@, $), in[#])` `$` is the row's sum.
    """
    if "TRANSFORM" not in text:
        return text
    output, _, inputs = matrices(constants["TILE"], constants["ALPHA"] - constants["TILE"] + 1)
    chosen = {"INPUT": inputs, "OUTPUT": output}
    text = _STORE.sub(lambda m: _statements(chosen[m[1]], m[2] + ";", m[3]), text)
    return _CALL.sub(lambda m: _statements(chosen[m[1]], f"{m[2]} = $;", m[3]), text)


def _statements(matrix: Matrix, statement: str, source: str) -> str:
    lines = []
    for row, coefficients in enumerate(matrix):
        lines.append(statement.replace("@", str(row)).replace("$", _sum(coefficients, source)))
    return "\n        ".join(lines) + "\n"


def _sum(coefficients: Sequence[Fraction], source: str) -> str:
    """Write only what is not zero: a compiler may not leave out a product with zero, which could be NaN."""
    terms = []
    for column, value in enumerate(coefficients):
        if value:
            name = source.replace("#", str(column))
            size = abs(float(value))
            terms.append(f"{'-' if value < 0 else '+'} {'' if size == 1 else f'{size!r}f * '}{name}")
    return " ".join(terms).removeprefix("+ ")


def _others(points: Sequence[Fraction], point: Fraction) -> Fraction:
    return Fraction(prod(point - other for other in points if other != point))


def _coefficients(roots: Sequence[Fraction], size: int) -> list[Fraction]:
    """Return the coefficients of the polynomial with these roots, lowest power first, padded to `size`."""
    out = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *out]
        out = [high - root * low for high, low in zip(shifted, [*out, Fraction(0)], strict=True)]
    return out + [Fraction(0)] * (size - len(out))
