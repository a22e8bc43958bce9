"""The counterparts of a study's figures in an experiment, which a report sets beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from orchestrator.model.axes import MATRIX_AXES
from orchestrator.model.base import Model, rule

from .matrix import Matrix
from .study import Study, StudyTable

PublishedMetric = Literal[
    "latency",
    "setup",
    "energy",
    "load_power",
    "idle_power",
    "net_power",
    "memory",
    "call",
    "call_setup",
    "share",
    "psnr",
    "best",
    "same_predictions",
    "limit",
    "limit_time",
    "token",
    "prompt_token",
    "first_token",
    "plateau_token",
    "sustained_token",
    "speed_left",
]
"""The quantity of a figure. `latency`: of an inference, a frame, or the layers named; `net_power`: load above idle;
`call`: an inference with what its inputs need (buffers, bindings, recorded commands, copies), as a program does that
prepares at its start only what no input changes; `call_setup`: of that all but the inference; `share`: of the named
layers in the time of all; `psnr`: of the outputs against the reference;
`best`: the value of `axis` with the least latency; `same_predictions`: examples with the same class; `limit`: the
largest value that ran in a limit search; `limit_time`: of an inference, or an epoch of training, there.
Of language models times of one token: `token` of the answer, `prompt_token`, `first_token` from the prompt's start,
`plateau_token` and `sustained_token` under a sustained load; `speed_left`: of the plateau's speed in the last third of
such a load."""

PER_S = "tokens/s"
"""Unit of a speed: a factor over ours."""
UNITS: Mapping[str, Mapping[str, float]] = {
    "latency": {"us": 1e-3, "ms": 1.0, "s": 1e3, "min": 6e4, "h": 36e5},
    "setup": {"ms": 1.0, "s": 1e3},
    "energy": {"mJ": 1e-3, "J": 1.0, "mWh": 3.6, "Wh": 3600.0},
    "load_power": {"mW": 1e-3, "W": 1.0},
    "idle_power": {"mW": 1e-3, "W": 1.0},
    "net_power": {"mW": 1e-3, "W": 1.0},
    "call": {"us": 1e-3, "ms": 1.0, "s": 1e3},
    "call_setup": {"us": 1e-3, "ms": 1.0, "s": 1e3},
    "share": {"%": 1.0},
    "psnr": {"dB": 1.0},
    "memory": {"B": 1.0, "MB": 1e6, "GB": 1e9},
    "best": {"": 1.0},
    "same_predictions": {"": 1.0},
    "limit": {"": 1.0},
    "limit_time": {"us": 1e-3, "ms": 1.0, "s": 1e3, "min": 6e4, "h": 36e5},
    "token": {"ms": 1.0, PER_S: 1e3},
    "prompt_token": {"ms": 1.0, PER_S: 1e3},
    "first_token": {"ms": 1.0, "s": 1e3},
    "plateau_token": {"ms": 1.0, PER_S: 1e3},
    "sustained_token": {"ms": 1.0, PER_S: 1e3},
    "speed_left": {"%": 1.0},
}
"""The units of each metric, in ours: ms, J, W, B, %, dB."""
GAIN, PERCENT = "x", "%"
"""Units of a figure that is over another: how many times as good, or how much of the other."""

PLACES = ("device", "network", "layer", "backend", "precision")
"""Keys beside the axes. A network or layer with `*` is the sum over those that it matches; `a*|b*` are two patterns."""


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
"""The keys of a figure: where it was measured, and the values of axes; of those not given the best configuration
counts."""


class Place(Model):
    """The keys and metric that all figures of a table's column or row have in common."""

    at: Keys = Field(default_factory=dict)
    over: Keys = Field(default_factory=dict)
    """The keys that a figure is over, where it says how many times as good, beside those that both share. With `device`
    that is another device of the experiment (see `Finding`)."""
    metric: PublishedMetric | None = None
    """The metric, instead of the table's."""


class PublishedTable(Model):
    """A table of the study, and where we have its figures. The keys of one are those of table, row and column together;
    a row that is called like a device is of that device."""

    table: str
    metric: PublishedMetric = "latency"
    at: Keys = Field(default_factory=dict)
    axis: str = ""
    """The axis, with `best`, whose value the figures are. A chart over it shows published figures of other metrics."""
    base: str = ""
    """The row or column to which the others are judged in proportion."""
    tolerance: float = Field(default=1.25, gt=1, le=2)
    """The factor by which a proportion may be off; never past half the way to no difference."""
    columns: dict[str, Place] = Field(min_length=1)
    """The columns that are set beside ours."""
    rows: dict[str, Place] = Field(default_factory=dict)
    """The rows that are set beside ours; empty: all."""

    def figures(self, part: StudyTable, devices: Mapping[str, object]) -> Iterator[tuple[str, str, Place, float]]:
        """Row, column, place and value of each figure of a part of the table."""
        for row, values in part.rows.items():
            if self.rows and row not in self.rows:
                continue
            device = part.device or (row if row in devices else "")
            own = self.rows.get(row, Place())
            for column, value in zip(part.columns, values, strict=True):
                if value is not None and (head := self.columns.get(column)):
                    at = {**self.at, **({"device": device} if device else {}), **own.at, **head.at}
                    metric = head.metric or own.metric or self.metric
                    yield row, column, Place(at=at, over={**own.over, **head.over}, metric=metric), value

    def check(self, study: Study) -> None:
        """Raises ValueError where the study has no such table, row, column or unit."""
        parts = study.called(self.table)
        if not parts:
            known = ", ".join(dict.fromkeys(each.table for each in (*study.cells, *study.logs)))
            raise ValueError(f"{study.source} has no table {self.table!r}; it has {known}")
        columns = {name: unit for part in parts for name, unit in part.columns.items()}
        rows = {name for part in parts for name in part.rows}
        strange = [name for name in self.columns if name not in columns] + [n for n in self.rows if n not in rows]
        if self.base and self.base not in {*columns, *rows}:
            strange.append(self.base)
        if strange:
            raise ValueError(f"table {self.table} has no {strange[0]!r}; it has {', '.join([*columns, *rows])}")
        for part in parts:
            for _, column, place, _ in self.figures(part, study.devices):
                known_units = {GAIN: 1.0, PERCENT: 1.0} if place.over else UNITS[place.metric or self.metric]
                if columns[column] not in known_units:
                    raise ValueError(
                        f"table {self.table}, {column}: {place.metric} has no unit {columns[column]!r}; "
                        f"it has {', '.join(known_units) or 'none'}"
                    )
                if place.metric == "best" and self.axis not in MATRIX_AXES:
                    raise ValueError(
                        f"table {self.table}: `best` needs `axis`, the one whose best value the figures are"
                    )


class Finding(Model):
    """A publication's statement in words, and what would show it here."""

    text: str = Field(min_length=1)
    metric: PublishedMetric = "latency"
    of: Keys = Field(default_factory=dict)
    expect: Literal["", "less", "more", "alike", "crosses", "by_memory"] = ""
    """`of` against `over`. `crosses`: `of` is behind at the smallest size of `operation` and ahead from some size on;
    `by_memory`: devices of which the driver tells more memory have a larger `limit`; empty: nothing that this
    experiment measures shows it."""
    over: Keys = Field(default_factory=dict)
    """The keys beside those of `of`. With `device` in either, devices of the experiment are compared: a device of
    the study, a model such as `SM-G930*`, `phone` or `workstation`."""
    than: float | None = Field(default=None, gt=0)
    """A figure of the metric in place of `over`, in ms, J, W, B, % or dB."""
    times: float = Field(default=1.0, gt=0)
    """The factor of `over` that is the bound of `less` and `more`, and the middle of `alike`."""
    operation: str = ""
    """The family of workloads, with `crosses`, e.g. `matmul`."""

    @rule
    def _comparable(self) -> None:
        if (self.expect == "by_memory") != (self.metric == "limit"):
            raise ValueError(f"{self.text!r}: give `metric: limit` and `expect: by_memory` together")
        if self.expect not in ("", "by_memory") and not (self.of and (self.over or self.than)):
            raise ValueError(f"{self.text!r}: `expect` compares `of` with `over`, or `than`: give both")
        if (self.expect == "crosses") != bool(self.operation):
            raise ValueError(f"{self.text!r}: give `expect: crosses` and `operation` together")


class Published(Model):
    """A study's figures and findings, and what of ours stands beside them."""

    study: Study | str
    """The study's file, relative to the experiment's; once that is read, what it holds."""
    note: str = ""
    """A note on what was measured there, and how it compares."""
    tables: tuple[PublishedTable, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def read(self) -> Study:
        return self.study if isinstance(self.study, Study) else Study(source=self.study)

    @property
    def by_layer(self) -> bool:
        """Return whether a figure is of a layer: then results by layer are needed."""
        places = [place.at for table in self.tables for place in (*table.columns.values(), *table.rows.values())]
        return any("layer" in at for at in (*places, *(table.at for table in self.tables)))

    @rule
    def _of_the_study(self) -> None:
        if isinstance(self.study, Study):
            for table in self.tables:
                table.check(self.study)
