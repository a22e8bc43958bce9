"""Make the rows of one cell, a metric each: what both sides measured is to be estimated, what one lacks is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
Members = tuple[tuple[int, ...], ...]
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


@dataclass
class _Cell:
    pair: Pair
    rules: Rules
    match: Match
    differs: Differs
    designs: dict[Members, Design | None]
    """By the blocks that were looked at already: most metrics have all."""

    def row(self, name: str, more: Fields, found: Figures | Examples | None = None, share: float = 1.0) -> Row:
        key, (metric, _, basis) = self.pair.key, name.partition("/")
        fields: Fields = {
            "device": key.device, "source": key.source, "network": key.network, "backend": key.backend,
            "precision": key.precision, "options": dict(key.options), "metric": metric, "basis": basis,
            "unit": METRICS[metric].unit, "margin": self.rules.margin(metric), "verdict": "unknown",
            "differs": self.differs, **more,
        }  # fmt: skip
        return Row(fields, found, share)


def rows_of_cell(pair: Pair, rules: Rules, match: Match) -> Iterator[Row]:
    """Each metric that a side has, in the order of `METRICS`."""
    cell = _Cell(pair, rules, match, _differs(pair), {})
    names = {name: None for side in (pair.a, pair.b) for row in side for name in row.values}
    for name in sorted(names, key=lambda name: (ORDER[name.partition("/")[0]], name)):
        yield _of_metric(cell, name)
    found = accuracies(pair.a, pair.b)
    if found is not None:
        yield cell.row("accuracy", {"a": found.a, "b": found.b}, Examples(found.estimate, found.p))
    if not names and found is None:
        yield _missing(cell, "latency")


def _of_metric(cell: _Cell, name: str) -> Row:
    pair = cell.pair
    members = tuple(tuple(n for n, row in enumerate(side) if name in row.values) for side in (pair.a, pair.b))
    if not all(members):
        return _missing(cell, name)
    sides = [[side[n] for n in own] for side, own in zip((pair.a, pair.b), members, strict=True)]
    values = [[row.values[name] for row in side] for side in sides]
    told: Fields = {"blocks": tuple(map(len, sides)), "nights": tuple(len({row.night for row in s}) for s in sides)}
    if min(map(min, values)) <= 0:
        return cell.row(name, told | {"reason": "a figure of a block is not above zero, so there is no ratio"})
    told["a"], told["b"] = means = [exp(fsum(map(log, each)) / len(each)) for each in values]
    metric = name.partition("/")[0]
    if metric == "energy" and not _comparable(sides, cell.match):
        reason = "the gain of a gauge is not known: energies of different phones do not compare"
        return cell.row(name, told | {"reason": reason})
    design = _design(cell, name, members, sides)
    least = min(design.layout.blocks) if design else min(map(len, sides))
    if least < MIN_BLOCKS:
        reason = f"needs {MIN_BLOCKS} blocks on each side"
        told |= {"ratio": means[1] / means[0], "reason": reason, "needs_blocks": max(1, MIN_BLOCKS - least)}
    if design is None:
        return cell.row(name, told)
    rounded = metric == "latency" and all(row.whole_ms for side in sides for row in side)
    figures = Figures(
        design, [values[0][n] for n in design.a], [values[1][n] for n in design.b],
        cell.rules.between_nights(metric), ROUNDING_MS / median(values[0]) if rounded else 0.0,
    )  # fmt: skip
    return cell.row(name, told, figures, share_of(max(row.look for side in sides for row in side)))


def _comparable(sides: Sequence[Sequence[SideRow]], match: Match) -> bool:
    """Whether energies are absolute, or all of one phone."""
    relative = any(row.relative_energy for side in sides for row in side)
    return not relative or (
        match == "device" and len({row.serial or row.device for side in sides for row in side}) == 1
    )


def _design(cell: _Cell, name: str, members: Members, sides: Sequence[Sequence[SideRow]]) -> Design | None:
    if members not in cell.designs:
        blocks = [[Block(row.night, row.round, row.started_at, row.values[name]) for row in side] for side in sides]
        cell.designs[members] = design_of(*blocks)
    return cell.designs[members]


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
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        for name, text in row.provenance.items():
            found.setdefault(name, {})[text] = None
    return found
