"""Let the cells of an experiment's two sides be alike but for the side: what the sides set is called `X|Y` on both."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from orchestrator.model.axes import axis_of
from orchestrator.model.experiment import Experiment

from .matching import COLUMNS
from .rows import SideRow


def alike(rows: Iterable[SideRow], experiment: Experiment) -> list[SideRow]:
    """The rows of an experiment; those of one without sides as they are."""
    names = _names(experiment)
    if not names:
        return list(rows)
    columns: dict[str, Any] = {name: text for name, text in names.items() if name in COLUMNS}
    options = {name: text for name, text in names.items() if name not in COLUMNS}
    return [replace(row, **columns, options={**row.options, **options}) for row in rows]


def _names(experiment: Experiment) -> dict[str, str]:
    """Axis, or column, that a side sets -> its values on both sides."""
    sides = experiment.sides
    if sides is None:
        return {}
    found = {
        name: "|".join(_value(experiment, dict(side.axes), name) for _, side in sides)
        for name in sorted(sides.overridden)
    }
    if any(side.onnx for _, side in sides):
        models = (
            experiment.workload.model_copy(update={"network": None, "onnx": side.onnx} if side.onnx else {})
            for _, side in sides
        )
        found["network"] = "|".join(dict.fromkeys(model.label for model in models))
    return found


def _value(experiment: Experiment, own: dict[str, int | str | bool], name: str) -> str:
    """Return a side's value of an axis: its own, the matrix's, the workload's, or the default."""
    listed, axis = experiment.matrix.listed(name), axis_of(name)
    if name == "network" and not listed:
        listed = (experiment.workload.label,)
    value = own.get(name, listed[0] if listed else axis and axis.otherwise)
    return str(value).lower() if isinstance(value, bool) else str(value)
