"""The axes as rows of the documentation's tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from kernels.options import COMPILE_AXES
from kernels.options.axis import EVERY, Axis
from orchestrator.model.axes import MATRIX_AXES

Form = Literal["field", "option"]


def with_axis_rows(page: str, form: Form) -> str:
    """The page with a row for each declared axis, in place of the rows that it has.

    `field`: of an experiment, `matrix.x`. `option`: of a command, `--x`; the compiler's axes alone.
    """
    axes: Mapping[str, Axis] = MATRIX_AXES if form == "field" else COMPILE_AXES
    names = {axis.name: f"matrix.{axis.name}" if form == "field" else axis.option for axis in axes.values()}
    rows = "".join(f"| {_named(names[axis.name], axis, form)} | {_described(axis, form)} |\n" for axis in axes.values())
    old = re.compile(rf"(^\| `(?:{'|'.join(map(re.escape, names.values()))})` .*\n)+", re.MULTILINE)
    return old.sub(lambda _: rows, page, count=1)


def _named(name: str, axis: Axis, form: Form) -> str:
    return f"`{name}` / `--no-{name[2:]}`" if form == "option" and axis.type is bool else f"`{name}`"


def _described(axis: Axis, form: Form) -> str:
    default = axis.otherwise if axis.unset else f"`{axis.otherwise}`"
    where = "" if axis.backends == EVERY else f" ({', '.join(axis.backends)})"
    values = f"; {axis.bounds[0]} to {axis.bounds[1]}" if axis.bounds and str(axis.bounds[1]) not in axis.help else ""
    folder = "" if form == "field" else "howto/"
    more = f" ([how]({folder}{axis.page}))" if axis.page else ""
    return f"{default} | {axis.help}{values}{where}{more}"
