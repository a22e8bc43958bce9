"""Published figures that a report sets beside ours, with their source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, FiniteFloat, model_validator

from orchestrator.model.axes import MATRIX_AXES
from orchestrator.model.base import Model

from .matrix import Matrix


def _as_written(value: Any) -> Any:
    """YAML reads `52.7` as a number; a figure is quoted as it was printed."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Text = Annotated[str, BeforeValidator(_as_written, json_schema_input_type=float | str)]
PublishedMetric = Literal[
    "latency",
    "setup",
    "energy",
    "load_power",
    "idle_power",
    "memory",
    "speed_up",
    "best",
    "changed_predictions",
    "limit",
    "limit_time",
    "other",
]
"""What a figure is of. `latency`: of an inference, a frame, or the layers that are named; `speed_up`: over `over`;
`best`: the value of `axis` with the least latency; `limit`: the largest value that ran in a limit search;
`limit_time`: of an inference, or an epoch of training, there; `other`: what the farm does not measure."""

UNITS: Mapping[str, Mapping[str, float]] = {
    "latency": {"us": 1e-3, "ms": 1.0, "s": 1e3, "min": 6e4, "h": 36e5},
    "setup": {"ms": 1.0, "s": 1e3},
    "energy": {"mJ": 1e-3, "J": 1.0, "mWh": 3.6, "Wh": 3600.0},
    "load_power": {"mW": 1e-3, "W": 1.0},
    "idle_power": {"mW": 1e-3, "W": 1.0},
    "memory": {"B": 1.0, "MB": 1e6, "GB": 1e9},
    "speed_up": {"x": 1.0},
    "best": {"": 1.0},
    "changed_predictions": {"": 1.0},
    "limit": {"": 1.0},
    "limit_time": {"us": 1e-3, "ms": 1.0, "s": 1e3, "min": 6e4, "h": 36e5},
}
"""Of each metric its units, in ours: ms, J, W, B. `other` takes any."""

PLACES = ("device", "network", "layer", "backend", "precision")
"""Keys beside the axes. A network or layer with `*` is the sum over those that it matches."""


def _known(keys: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in keys.items():
        if name in ("device", "network", "layer"):
            found[name] = str(value)
        elif name in PLACES or name in MATRIX_AXES:
            (one,) = getattr(Matrix.model_validate({name: value}), name)
            found[name] = getattr(one, "value", one)
        else:
            raise ValueError(f"`{name}` is neither an axis nor one of {', '.join(PLACES)}")
    return found


Keys = Annotated[dict[str, int | float | str | bool], AfterValidator(_known)]
"""What a figure is of: where it was measured, and the values of axes; of those not given the best configuration
counts."""


class Heading(Model):
    """A column, and what all figures in it have in common."""

    name: str
    at: Keys = Field(default_factory=dict)
    metric: PublishedMetric | None = None
    """Instead of the table's."""


class Line(Model):
    """A row, and what all figures in it have in common."""

    name: str
    at: Keys = Field(default_factory=dict)
    values: tuple[FiniteFloat | None, ...]
    """One for each column; null where nothing was published."""


class PublishedTable(Model):
    """Figures of one kind. The keys of a figure are those of its table, row and column together."""

    title: str = Field(min_length=1)
    metric: PublishedMetric = "latency"
    unit: str = ""
    at: Keys = Field(default_factory=dict)
    over: Keys = Field(default_factory=dict)
    """With `speed_up`: the keys of what it is over, beside those that a figure shares with it."""
    axis: str = ""
    """With `best`: whose value the figures are. A chart over this axis shows the published figures of other metrics."""
    compare: Literal["columns", "rows", "cells"] = "columns"
    """What the shape is of: the columns of a row against each other, the rows of a column, or each configuration by
    itself."""
    columns: tuple[Heading, ...] = Field(min_length=1)
    rows: tuple[Line, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> PublishedTable:
        for number, row in enumerate(self.rows, 1):
            if len(row.values) != len(self.columns):
                raise ValueError(f"row {number} has {len(row.values)} figures for {len(self.columns)} columns")
        metrics = {column.metric or self.metric for column in self.columns}
        for metric in metrics:
            if metric in UNITS and self.unit not in UNITS[metric]:
                known = ", ".join(UNITS[metric])
                raise ValueError(f"{self.title}: {metric} has no unit {self.unit!r}; it has {known or 'none'}")
        if ("best" in metrics) and self.axis not in MATRIX_AXES:
            raise ValueError(f"{self.title}: `best` needs `axis`, the one whose best value the figures are")
        if "speed_up" in metrics and not self.over:
            raise ValueError(f"{self.title}: `speed_up` needs `over`, the keys of what it is over")
        return self


class Finding(Model):
    """What a publication says in words, and what would show it here."""

    text: str = Field(min_length=1)
    metric: PublishedMetric = "latency"
    of: Keys = Field(default_factory=dict)
    expect: Literal["", "less", "more", "alike", "crosses"] = ""
    """`of` against `over`. `crosses`: `of` is behind at the smallest size of `operation` and ahead from some size on;
    empty: nothing that this experiment measures shows it."""
    over: Keys = Field(default_factory=dict)
    operation: str = ""
    """With `crosses`: the family of workloads, e.g. `matmul`."""

    @model_validator(mode="after")
    def _comparable(self) -> Finding:
        if self.expect and not (self.of and self.over):
            raise ValueError(f"{self.text!r}: `expect` compares `of` with `over`: give both")
        if (self.expect == "crosses") != bool(self.operation):
            raise ValueError(f"{self.text!r}: give `expect: crosses` and `operation` together")
        return self


class Published(Model):
    """Figures and findings of a publication."""

    source: str = Field(min_length=1)
    """Who published it, and when."""
    note: str = ""
    """What was measured there, and how it compares."""
    devices: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Devices of the publication by name, with patterns of their model's name: `Galaxy S7: [SM-G930*]`."""
    tables: tuple[PublishedTable, ...] = ()
    findings: tuple[Finding, ...] = ()
    columns: tuple[str, ...] = ()
    """Of figures that nothing is set beside."""
    rows: tuple[tuple[Text, ...], ...] = ()
    """One text for each column; empty where nothing was published."""

    @property
    def by_layer(self) -> bool:
        """Whether a figure is of a layer: then results by layer are needed."""
        tables = self.tables
        keys = [table.at for table in tables]
        keys += [part.at for table in tables for parts in (table.rows, table.columns) for part in parts]
        return any("layer" in at for at in keys)

    @model_validator(mode="after")
    def _as_wide_as_its_head(self) -> Published:
        if not (self.tables or self.findings or self.rows):
            raise ValueError("give `tables`, `findings`, or `columns` with `rows`")
        for number, row in enumerate(self.rows, 1):
            if len(row) != len(self.columns):
                raise ValueError(f"row {number} has {len(row)} texts for {len(self.columns)} columns")
        return self
