"""Make the rows of one cell, a metric each: what both sides measured is to be estimated, what one lacks is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, fsum, log
from statistics import median
from typing import NamedTuple

from .accuracy import accuracies
from .matching import Match, Pair
from .metrics import METRICS, MIN_BLOCKS, Rules
from .ratio import ROUNDING_MS, Block, Design, Estimate, design_of
from .rows import SideRow
from .verdict import share_of

ORDER = {name: place for place, name in enumerate(METRICS)}
Fields = dict[str, object]
Differs = dict[str, tuple[str, str]]
Members = tuple[tuple[int, ...], tuple[int, ...]]
"""Places of the blocks of each side that have a metric."""


class Figures(NamedTuple):
    """What a ratio is estimated of."""

    design: Design
    a: list[float]
    """Of the blocks, in the order of the design."""
    b: list[float]
    between: float
    rounding: float


class Examples(NamedTuple):
    """A ratio that was estimated by examples, and the exact p of no difference."""

    estimate: Estimate
    p: float


@dataclass
class Row:
    """One row of the table while it is made."""

    fields: Fields
    """Of its `Compared`."""
    found: Figures | Examples | None = None
    share: float = 1.0
    """Of the errors that this look may make."""

    @property
    def margin(self) -> float:
        margin = self.fields["margin"]
        assert isinstance(margin, float)
        return margin


class _Blocks:
    """The blocks of a cell that have a metric: most metrics of a cell have the same."""

    def __init__(self, pair: Pair, members: Members, match: Match) -> None:
        self.sides = [[side[place] for place in own] for side, own in zip((pair.a, pair.b), members, strict=True)]
        every = [row for side in self.sides for row in side]
        self.counts: Fields = {
            "blocks": tuple(map(len, self.sides)),
            "nights": tuple(len({row.night for row in side}) for side in self.sides),
        }
        one_phone = match == "device" and len({row.serial or row.device for row in every}) == 1
        self.energies_compare = one_phone or not any(row.relative_energy for row in every)
        self.whole_ms = all(row.whole_ms for row in every)
        self.share = share_of(max((row.look for row in every), default=0))

    @cached_property
    def design(self) -> Design | None:
        a, b = ([Block(row.night, row.round, row.started_at, 0.0) for row in side] for side in self.sides)
        return design_of(a, b)


@dataclass
class _Cell:
    pair: Pair
    rules: Rules
    match: Match
    differs: Differs
    known: dict[Members, _Blocks]

    def row(self, name: str, more: Fields, found: Figures | Examples | None = None, share: float = 1.0) -> Row:
        key, (metric, _, basis) = self.pair.key, name.partition("/")
        fields: Fields = {
            "device": key.device, "source": key.source, "network": key.network, "backend": key.backend,
            "precision": key.precision, "options": dict(key.options), "metric": metric, "basis": basis,
            "unit": METRICS[metric].unit, "margin": self.rules.margin(metric), "verdict": "unknown",
            "differs": self.differs, **more,
        }  # fmt: skip
        return Row(fields, found, share)

    def blocks(self, members: Members) -> _Blocks:
        if members not in self.known:
            self.known[members] = _Blocks(self.pair, members, self.match)
        return self.known[members]


def rows_of_cell(pair: Pair, rules: Rules, match: Match) -> Iterator[Row]:
    """Each metric that a side has, in the order of `METRICS`."""
    cell = _Cell(pair, rules, match, _differs(pair), {})
    by_name = _members(pair)
    for name in sorted(by_name, key=lambda name: (ORDER[name.partition("/")[0]], name)):
        yield _of_metric(cell, name, by_name[name])
    found = accuracies(pair.a, pair.b)
    if found is not None:
        yield cell.row("accuracy", {"a": found.a, "b": found.b}, Examples(found.estimate, found.p))
    if not by_name and found is None:
        yield _missing(cell, "latency")


def _members(pair: Pair) -> dict[str, Members]:
    """The blocks of each metric."""
    by_names = [_by_names(side) for side in (pair.a, pair.b)]
    names = {name for side in by_names for own in side for name in own}

    def places(side: dict[tuple[str, ...], list[int]], name: str) -> tuple[int, ...]:
        return tuple(sorted(place for own, places in side.items() if name in own for place in places))

    return {name: (places(by_names[0], name), places(by_names[1], name)) for name in names}


def _by_names(rows: Sequence[SideRow]) -> dict[tuple[str, ...], list[int]]:
    """Places of rows by the metrics that they have: mostly all the same."""
    found: dict[tuple[str, ...], list[int]] = {}
    for place, row in enumerate(rows):
        found.setdefault(tuple(row.values), []).append(place)
    return found


def _of_metric(cell: _Cell, name: str, members: Members) -> Row:
    if not all(members):
        return _missing(cell, name)
    blocks = cell.blocks(members)
    values = [[row.values[name] for row in side] for side in blocks.sides]
    if min(map(min, values)) <= 0:
        reason = "a figure of a block is not above zero, so there is no ratio"
        return cell.row(name, blocks.counts | {"reason": reason})
    means = [exp(fsum(map(log, each)) / len(each)) for each in values]
    told: Fields = {**blocks.counts, "a": means[0], "b": means[1]}
    metric = name.partition("/")[0]
    if metric == "energy" and not blocks.energies_compare:
        reason = "the gain of a gauge is not known: energies of different phones do not compare"
        return cell.row(name, told | {"reason": reason})
    design = blocks.design
    least = min(design.layout.blocks) if design else min(map(len, values))
    if least < MIN_BLOCKS:
        reason = f"needs {MIN_BLOCKS} blocks on each side"
        told |= {"ratio": means[1] / means[0], "reason": reason, "needs_blocks": max(1, MIN_BLOCKS - least)}
    if design is None:
        return cell.row(name, told)
    figures = Figures(
        design, [values[0][place] for place in design.a], [values[1][place] for place in design.b],
        cell.rules.between_nights(metric),
        ROUNDING_MS / median(values[0]) if metric == "latency" and blocks.whole_ms else 0.0,
    )  # fmt: skip
    return cell.row(name, told, figures, blocks.share)


def _missing(cell: _Cell, name: str) -> Row:
    pair = cell.pair
    has = [any(name in row.values for row in side) for side in (pair.a, pair.b)]
    lacks = "both" if not any(has) else "A" if has[1] else "B"
    side = pair.a if lacks == "A" else pair.b
    problems = dict.fromkeys(row.problem for row in side if row.problem)
    if not side:
        reason = f"the cell was not run on {lacks}"
    elif problems:
        reason = f"no block went well on {lacks}: {', '.join(problems)}"
    else:
        reason = f"{lacks} did not measure it" if lacks != "both" else "neither side measured anything"
    return cell.row(name, {"verdict": "missing", "missing_on": lacks, "reason": reason})


def _differs(pair: Pair) -> Differs:
    """What the sides do not have in common, of what both tell."""
    first, second = _provenance(pair.a), _provenance(pair.b)
    return {
        name: (", ".join(first[name]), ", ".join(second[name]))
        for name in first
        if name in second and first[name].keys() != second[name].keys()
    }


def _provenance(rows: Sequence[SideRow]) -> dict[str, dict[str, None]]:
    different: list[dict[str, str]] = []
    for row in rows:
        if row.provenance not in different:
            different.append(row.provenance)
    found: dict[str, dict[str, None]] = {}
    for each in different:
        for name, text in each.items():
            found.setdefault(name, {})[text] = None
    return found
