"""A published figure with its keys, and whether one of our devices is the one that it was measured on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from orchestrator.model.device import Source
from orchestrator.model.experiment import Place, Published, PublishedTable, Study, StudyTable
from orchestrator.model.experiment.published import UNITS

MODELLED = ("energy", "load_power", "idle_power", "net_power", "limit", "limit_time")
"""What a virtual phone has from its profile, of which published figures are a part."""


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
        """Where it was measured; empty where that is not said."""
        return str(self.keys.get("device", ""))

    @property
    def unit(self) -> str:
        return self.part.columns[self.column]

    @property
    def scale(self) -> float:
        """How much of ours its unit is."""
        return 1.0 if self.place.over else UNITS[self.metric][self.unit]

    @property
    def title(self) -> str:
        name = self.table.table
        return f"{self.part.title} ({name if ' ' in name else f'table {name}'})"

    def contradiction(self, study: Study) -> str:
        """What the text says against it; empty where nothing does."""
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

    def circular(self, metric: str, same_model: bool) -> str:
        """The verdict on a figure that ours may be made from; empty where it cannot be."""
        if self.source == Source.REPLAY or (self.source == Source.IMPORT and same_model):
            return "played back"
        return "modelled" if self.source == Source.VIRTUAL and metric in MODELLED else ""
