"""The axes of a matrix as rows of the documentation's table."""

from __future__ import annotations

import re

from kernels.axis import EVERY, Axis
from orchestrator.model.axes import MATRIX_AXES


def with_axis_rows(page: str) -> str:
    """The page with a row for each declared axis, in place of the rows that it has."""
    rows = "".join(f"{_row(axis)}\n" for axis in MATRIX_AXES.values())
    old = re.compile(rf"(^\| `matrix\.(?:{'|'.join(MATRIX_AXES)})` .*\n)+", re.MULTILINE)
    return old.sub(lambda _: rows, page, count=1)


def _row(axis: Axis) -> str:
    default = axis.otherwise if axis.unset else f"`{axis.otherwise}`"
    where = "" if axis.backends == EVERY else f" ({', '.join(axis.backends)})"
    values = f"; {axis.bounds[0]} to {axis.bounds[1]}" if axis.bounds and str(axis.bounds[1]) not in axis.help else ""
    more = f" ([how]({axis.page}))" if axis.page else ""
    return f"| `matrix.{axis.name}` | {default} | {axis.help}{values}{where}{more} |"
