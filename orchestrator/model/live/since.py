"""The words of an experiment that hosts of an older protocol do not know: such a host would refuse its jobs time and
again, or run them as if the word were not there, and report figures of something else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from orchestrator.model.experiment import Experiment

PROTOCOL = 12
"""Version of what scheduler and workers say to each other through Redis: keys, assignments, records, announcements."""
OLDEST_PROTOCOL = 8
"""The oldest one that a scheduler of this version works with: hosts may be upgraded one after the other."""
VALUES: dict[tuple[str, str], int] = {
    ("matrix.fuse", "branches"): 9,
    ("matrix.product", "one_row"): 10,
    ("matrix.product", "packed"): 10,
    ("matrix.product", "packed_rows"): 12,
}
"""The place of a word in an experiment, a value that was once new there -> the first protocol of the hosts that know
it. `workload` is each of several; an axis of the matrix is also that of a side."""


def _at(value: object, path: Sequence[str]) -> Iterator[str]:
    """The words that stand at a path: of a list its members, of `bias+concat` and `blocked 16x32` their parts."""
    if isinstance(value, tuple):
        for each in value:
            yield from _at(each, path)
    elif path:
        found = value.get(path[0]) if isinstance(value, dict) else getattr(value, path[0], None)
        yield from _at(found, path[1:])
    elif value is not None:
        yield from re.split("[+ ]", str(value))


def has(of: Experiment, place: str, value: str) -> bool:
    """Return whether an experiment, or a side of it, has a value at a place of `VALUES`."""
    root, *path = place.split(".")
    roots = {"workload": of.every_workload, "matrix": (of.matrix, *(side.axes for _, side in of.sides or ()))}
    return value in _at(roots.get(root, getattr(of, root)), path)


def _axes(of: Experiment) -> set[str]:
    return {*of.matrix.options, *(of.sides.overridden if of.sides else ())}


SINCE: dict[str, tuple[int, Callable[[Experiment], object]]] = {
    "conditions.stop_temp": (9, lambda of: of.conditions.stop_temp is not None),
    "engine.models": (9, lambda of: of.engine and of.engine.models),
    "engine.builds": (9, lambda of: of.engine and of.engine.builds),
    "sides.engine": (9, lambda of: any(side.engine for _, side in of.sides or ())),
    "matrix.ENGINE.AXIS": (9, lambda of: any("." in name for name in _axes(of))),
    "workload.model": (9, lambda of: any(each.model for each in of.every_workload)),
    "workload.language_model": (10, lambda of: of.workload.language_model),
    "workload.batch": (12, lambda of: of.workload.language_model and "batch" in _axes(of)),
    **{
        f"{place}: {value}": (since, partial(has, place=place, value=value)) for (place, value), since in VALUES.items()
    },
}
"""The first protocol of hosts that know a word, and whether an experiment says it; others are of `OLDEST_PROTOCOL`."""


def said(experiment: Experiment) -> frozenset[str]:
    """Return the words of the table that an experiment says."""
    return frozenset(word for word, (_, says) in SINCE.items() if says(experiment))


def unknown(protocol: int) -> frozenset[str]:
    """Return the words of the table that a host of this protocol does not know."""
    return frozenset(word for word, (since, _) in SINCE.items() if protocol < since)
