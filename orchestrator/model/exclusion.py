"""A cell that is not run, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


class Named(Protocol):
    """A cell, or a point of the matrix."""

    @property
    def label(self) -> str: ...

    @property
    def workload(self) -> Any: ...

    @property
    def backend(self) -> str: ...

    @property
    def precision(self) -> Any: ...

    @property
    def options(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class Exclusion:
    """A cell that is not run on a device (`serial` empty: on none), in any block."""

    serial: str
    cell: str
    """Label of the cell."""
    reason: str
    workload: str = ""
    """The parts of that name; empty in what was submitted to an older farm."""
    backend: str = ""
    precision: str = ""
    options: dict[str, Any] = field(default_factory=dict, hash=False)

    @staticmethod
    def of(serial: str, what: Named, reason: str) -> Exclusion:
        """Return the exclusion of a cell, or a point of the matrix."""
        parts = what.workload.label, str(what.backend), str(what.precision), dict(what.options)
        return Exclusion(serial, what.label, reason, *parts)
