"""Find the experiment that a command shows results of, and say what it lacks."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from farm.access import find_experiment
from orchestrator.model.quantity import counted

from .output import log, say

if TYPE_CHECKING:
    from dashboards.answers.answers import Brief
    from farm.doors import Door
    from orchestrator.ledger import ExperimentRow, Ledger


def find_results(door: Door, name: str) -> str:
    """Return the experiment's id, by its id or name; says so where that was cancelled and an older one has more."""
    from dashboards.answers import answers

    found = door.find(name)
    _tell_older(_of(found), map(_of, door.every(answers.experiments) if found.counts.get("cancelled") else ()))
    return found.experiment


def find_measured(ledger: Ledger, name: str) -> ExperimentRow:
    """The same of a ledger."""
    row = find_experiment(ledger, name)

    def of(row: ExperimentRow) -> _Run:
        return _Run(row.id, row.experiment.name, row.submitted_at, row.counts.get("ok", 0))

    _tell_older(of(row), map(of, ledger.experiments() if row.counts.get("cancelled") else ()))
    return row


class _Run(NamedTuple):
    id: str
    name: str
    submitted_at: float
    ok: int


def _of(found: Brief) -> _Run:
    return _Run(found.experiment, found.name, found.submitted_at, found.counts.get("ok", 0))


def _tell_older(run: _Run, all_of_them: Iterable[_Run]) -> None:
    more = [
        each
        for each in all_of_them
        if each.name == run.name and each.ok > run.ok and each.submitted_at < run.submitted_at
    ]
    if more:
        older = max(more, key=lambda each: each.submitted_at)
        log().print(
            f"{run.id} was cancelled with {counted(run.ok, 'job')} ok; before it {older.id} had {older.ok}: "
            "give that id to see it",
            markup=False,
        )


def tell_pruned(pruned: Mapping[str, int]) -> None:
    """Say which raw records the ledger has no more, and how they come back."""
    for file, count in pruned.items():
        back = f"`farm ledger adopt {shlex.quote(file)}` brings them back" if file else "no archive holds them"
        say(f"{count} raw records were pruned: {back}")
