"""A published figure with its keys, and whether one of our devices is the one that it was measured on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from orchestrator.model.device import Source
from orchestrator.model.experiment import Place, Published, PublishedTable, Study, StudyTable
from orchestrator.model.experiment.published import PER_S, PERCENT, UNITS

MODELLED = ("energy", "load_power", "idle_power", "net_power", "limit", "limit_time")
"""The metrics that a virtual phone has from its profile, of which published figures are a part."""


class Figure(NamedTuple):
    """One cell of a study's table that is set beside ours."""

    table: PublishedTable
    part: StudyTable
    row: str
    column: str
    place: Place
    value: float

    @property
    def metric(self) -> str:
        return self.place.metric or self.table.metric

    @property
    def keys(self) -> Mapping[str, Any]:
        return self.place.at

    @property
    def device(self) -> str:
        """The device on which it was measured; empty where that is not said."""
        return str(self.keys.get("device", ""))

    @property
    def unit(self) -> str:
        return self.part.columns[self.column]

    def in_unit(self, ours: float) -> float:
        """Ours in its unit."""
        if self.place.over:
            return 100 / ours if self.unit == PERCENT else ours
        factor = UNITS[self.metric][self.unit]
        return factor / ours if self.unit == PER_S else ours / factor

    @property
    def theirs(self) -> float:
        """It in the unit of ours."""
        if self.place.over:
            return 100 / self.value if self.unit == PERCENT else self.value
        factor = UNITS[self.metric][self.unit]
        return factor / self.value if self.unit == PER_S else self.value * factor

    @property
    def title(self) -> str:
        name = self.table.table
        return f"{self.part.title} ({name if ' ' in name else f'table {name}'})"

    def contradiction(self, study: Study) -> str:
        """Return what the text says against it; empty where nothing does."""
        found = (
            each.but
            for each in study.contradictions
            if each.table == self.table.table and each.row in ("", self.row) and each.column in ("", self.column)
        )
        return "; ".join(found)


def figures_of(published: Published) -> Iterator[Figure]:
    """All that are set beside ours, part by part of each table."""
    for table in published.tables:
        for part in published.read.called(table.table):
            yield from (Figure(table, part, *found) for found in table.figures(part, published.read.devices))


class OurDevice(NamedTuple):
    """One of ours with the source of its figures."""

    serial: str
    source: str
    model: str

    def is_a(self, name: str, study: Study) -> bool:
        """Return whether it is that device of the study, of that model, or of that kind: `phone` or `workstation`."""
        kind = "workstation" if self.source == Source.WORKSTATION else "phone"
        return name in (kind, self.named_in(study)) or fnmatchcase(self.model.lower(), name.lower())

    def named_in(self, study: Study) -> str:
        """The published device of the same model; empty where there is none."""
        model = self.model.lower()
        return next(
            (
                name
                for name, models in study.devices.items()
                if any(fnmatchcase(model, pattern.lower()) for pattern in (name, *models))
            ),
            "",
        )

    def circular(self, metric: str) -> str:
        """The verdict on a figure that ours may be made from; empty where it cannot be."""
        if self.source in (Source.REPLAY, Source.IMPORT):
            return "played back"
        return "modelled" if self.source == Source.VIRTUAL and metric in MODELLED else ""
