"""Find the experiment that a command shows results of, and say what it lacks."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from farm.access import find_experiment

from .output import log, say

if TYPE_CHECKING:
    from orchestrator.ledger import ExperimentRow, Ledger


def find_measured(ledger: Ledger, name: str) -> ExperimentRow:
    """The same for what shows results: says so where the one that is meant was cancelled and an older one has more."""
    row = find_experiment(ledger, name)
    older = ledger.experiments() if row.counts.get("cancelled") else []
    same = [each for each in older if each.experiment.name == row.experiment.name]
    more = [each for each in same if _measured(each) > _measured(row) and each.submitted_at < row.submitted_at]
    if more:
        log().print(
            f"{row.id} was cancelled with {_measured(row)} jobs ok; before it {more[-1].id} had {_measured(more[-1])}: "
            "give that id to see it",
            markup=False,
        )
    return row


def tell_pruned(ledger: Ledger, experiment_id: str) -> None:
    """Say which raw records the ledger has no more, and how they come back."""
    for file, count in ledger.pruned(experiment_id).items():
        back = f"`farm ledger adopt {shlex.quote(file)}` brings them back" if file else "no archive holds them"
        say(f"{count} raw records were pruned: {back}")


def _measured(row: ExperimentRow) -> int:
    return row.counts.get("ok", 0)
