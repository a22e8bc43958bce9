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
"""The blocks of each side that have a metric, by their ids."""


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

    def __init__(self, a: Sequence[SideRow], b: Sequence[SideRow], match: Match) -> None:
        self.sides = a, b
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
    differs: Differs

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
    cell = _Cell(pair, rules, _differs(pair))
    by_name = _by_metric(pair, match)
    for name in sorted(by_name, key=lambda name: (ORDER[name.partition("/")[0]], name)):
        yield _of_metric(cell, name, by_name[name])
    found = accuracies(pair.a, pair.b)
    if found is not None:
        yield cell.row("accuracy", {"a": found.a, "b": found.b}, Examples(found.estimate, found.p))
    if not by_name and found is None:
        yield _missing(cell, "latency")


def _by_metric(pair: Pair, match: Match) -> dict[str, _Blocks]:
    """The blocks that have each metric: mostly all of a side, which `_Blocks` then share."""
    names = {name: None for side in (pair.a, pair.b) for row in side for name in row.values}
    known: dict[Members, _Blocks] = {}
    found = {}
    for name in names:
        a, b = ([row for row in side if name in row.values] for side in (pair.a, pair.b))
        members = tuple(map(id, a)), tuple(map(id, b))
        if members not in known:
            known[members] = _Blocks(a, b, match)
        found[name] = known[members]
    return found


def _of_metric(cell: _Cell, name: str, blocks: _Blocks) -> Row:
    if not all(blocks.sides):
        return _missing(cell, name)
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
