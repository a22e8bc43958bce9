"""Gather what is told of the results of experiments, once while nothing changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from orchestrator.acts.submission.labels import read_labels
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.ledger import ExperimentRow, Ledger
from orchestrator.model.errors import ModelFileError

if TYPE_CHECKING:
    from orchestrator.analysis.ranking import Ranked
    from orchestrator.report.content import Content

KEPT = 8
"""Experiments."""
State = tuple[str, tuple[tuple[str, int], ...]]
"""An experiment and how far it is: its results are others when a job has ended."""


class Contents:
    """The contents of pages and reports. Threads may share them."""

    def __init__(self, ledger: Callable[[], Ledger], state: Path) -> None:
        self._ledger, self.state = ledger, state
        self._kept: dict[tuple[State, bool], Content] = {}
        self._ranked: dict[State, list[Ranked]] = {}
        self._lock, self._ranking = Lock(), Lock()

    def of(self, row: ExperimentRow, *, layers: bool = False) -> Content:
        """One at a time: gathering takes a core. `layers`: as reports have them, which are long to read."""
        from orchestrator.report.gathering import gather

        key = (state_of(row), layers)
        with self._lock:
            if key not in self._kept:
                found = gather(self._ledger(), row, self.labels(row), layers=layers)
                self._kept = dict([*self._kept.items(), (key, found)][-KEPT:])
            return self._kept[key]

    def ranked(self) -> list[Ranked]:
        """Return what the newest experiments add to the ranking; only those that changed are read anew."""
        from orchestrator.report.parts.ranking import NEWEST, ranked_in

        with self._ranking:
            ledger = self._ledger()
            rows = {state_of(row): row for row in ledger.listed.experiments(0, NEWEST)[0]}
            self._ranked = {
                key: self._ranked[key] if key in self._ranked else ranked_in(ledger, row) for key, row in rows.items()
            }
            return [each for own in self._ranked.values() for each in own]

    def labels(self, row: ExperimentRow) -> tuple[int, ...] | None:
        """Return them; where they cannot be read, the rest is told without them."""
        dataset = row.experiment.workload.dataset
        if dataset is None or dataset.labels_sha256 is None:
            return None
        try:
            return read_labels(Artifacts(self.state).path(dataset.labels_sha256))
        except ModelFileError:
            return None


def state_of(row: ExperimentRow) -> State:
    return row.id, tuple(sorted(row.counts.items()))
