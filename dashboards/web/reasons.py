"""The reasons why most jobs wait, told once for each experiment and kind of reason."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from orchestrator.answers import Wait

NAMED = 4
"""Texts of a reason that are told one by one."""


@dataclass(frozen=True)
class Reason:
    """Jobs of one experiment that wait for the same kind of thing."""

    experiment_id: str
    kind: str
    jobs: int
    texts: tuple[str, ...]
    more: int


def reasons_of(waits: tuple[Wait, ...]) -> list[Reason]:
    """Return reasons by experiment and kind, what most jobs wait for first."""
    found: dict[tuple[str, str], list[Wait]] = defaultdict(list)
    for wait in waits:
        found[wait.experiment_id, wait.reason.kind.value].append(wait)
    return sorted((_reason(*key, of) for key, of in found.items()), key=lambda each: -each.jobs)


def _reason(experiment_id: str, kind: str, waits: list[Wait]) -> Reason:
    texts = tuple(dict.fromkeys(wait.text for wait in sorted(waits, key=lambda wait: -wait.jobs)))
    return Reason(experiment_id, kind.replace("_", " "), sum(w.jobs for w in waits), texts[:NAMED], len(texts) - NAMED)
