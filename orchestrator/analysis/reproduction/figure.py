"""A published figure with its keys, and whether one of our devices is the one that it was measured on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from orchestrator.model.experiment import Published, PublishedTable
from orchestrator.model.experiment.published import UNITS


class Figure(NamedTuple):
    """One cell of a published table."""

    table: PublishedTable
    row: str
    column: str
    metric: str
    keys: Mapping[str, Any]
    value: float

    @property
    def device(self) -> str:
        """Where it was measured; empty where that is not said."""
        return str(self.keys.get("device", ""))

    @property
    def line(self) -> str:
        """Figures of one line are compared with each other."""
        return {"columns": self.row, "rows": self.column, "cells": f"{self.row}\n{self.column}"}[self.table.compare]

    @property
    def scale(self) -> float:
        """Of its unit in ours."""
        return UNITS.get(self.metric, {}).get(self.table.unit, 1.0)


def figures_of(table: PublishedTable) -> Iterator[Figure]:
    """Those that were published, row by row."""
    for row in table.rows:
        for column, value in zip(table.columns, row.values, strict=True):
            if value is not None:
                keys = {**table.at, **row.at, **column.at}
                yield Figure(table, row.name, column.name, column.metric or table.metric, keys, value)


class OurDevice(NamedTuple):
    """One of ours with the source of its figures."""

    serial: str
    source: str
    model: str

    def named_in(self, published: Published) -> str:
        """The published device of the same model; empty where there is none."""
        patterns = {name: (name, *models) for name, models in published.devices.items()}
        return next((name for name, each in patterns.items() if _is_one(self.model, each)), "")


def _is_one(model: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(model.lower(), pattern.lower()) for pattern in patterns)
