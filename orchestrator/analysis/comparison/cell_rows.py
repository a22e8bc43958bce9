"""Make the rows of one cell, a metric each: what both sides measured is to be estimated, what one lacks is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from math import log
from operator import itemgetter
from statistics import median
from typing import NamedTuple

from orchestrator.analysis.statistics import ENERGIES, QUANTITIES, TOO_SHORT, Unresolved, energy_of, median_of

from .accuracy import accuracies
from .compared import Compared
from .matching import Match, Pair
from .metrics import METRICS, MIN_BLOCKS, Rules
from .ratio import ROUNDING_MS, Design, Estimate, design_of
from .rows import SideRow
from .verdict import share_of

ORDER = {name: place for place, name in enumerate(METRICS)}
Differs = dict[str, tuple[str, str]]


class Figures(NamedTuple):
    """The figures of which a ratio is estimated."""

    design: Design
    a: tuple[float, ...]
    """The figures of A's blocks, in the order of the design."""
    b: tuple[float, ...]
    point: float
    """The quotient of the medians of all blocks that have it."""
    between: float
    rounding: float


class Examples(NamedTuple):
    """A ratio that was estimated by examples, and the exact p of no difference."""

    estimate: Estimate
    p: float


class Row(NamedTuple):
    """One row of the table while it is made."""

    told: Compared
    found: Figures | Examples | None = None
    share: float = 1.0
    """The share of the permitted errors that this look may make."""
    phone: float | None = None
    """Logarithm of how much slower the canaries were on B, where the sides are not paired; None: nobody knows."""


class _Blocks:
    """The blocks of a cell that have a metric: most metrics of a cell have the same."""

    def __init__(self, a: Sequence[SideRow], b: Sequence[SideRow], match: Match) -> None:
        self.sides = a, b
        every = [*a, *b]
        self.blocks = len(a), len(b)
        self.nights = len({row.night for row in a}), len({row.night for row in b})
        one_phone = match == "device" and len({row.serial or row.device for row in every}) == 1
        self.energies_compare = one_phone or not any(row.relative_energy for row in every)
        self.whole_ms = all(row.whole_ms for row in every)
        self.share = share_of(max([row.look for row in every], default=0))

    @cached_property
    def design(self) -> Design | None:
        return design_of(*self.sides)

    @cached_property
    def phone(self) -> float | None:
        """The log of how far canaries' times moved from A to B; None for paired blocks, or without canaries on both."""
        if self.design is None or self.design.layout.method == "paired":
            return None
        a, b = ({row.night: row.canaries_ms for row in side}.values() for side in self.sides)
        levels = [{cell: median(own[cell] for own in side if cell in own) for one in side for cell in one}
                  for side in (a, b)]  # fmt: skip
        moves = [log(levels[1][cell] / levels[0][cell]) for cell in levels[0].keys() & levels[1].keys()]
        return median(moves) if moves else None

    @cached_property
    def least(self) -> int:
        """Blocks, or pairs of them, of the side that has fewer."""
        return min(self.design.layout.blocks if self.design else self.blocks)


class _Cell:
    def __init__(self, pair: Pair, rules: Rules) -> None:
        self.pair, self.rules = pair, rules
        self.options, self.differs = dict(pair.key.options), _differs(pair)

    def row(self, name: str) -> Compared:
        """Return the row of a metric; nothing is known yet."""
        key, (metric, _, basis) = self.pair.key, name.partition("/")
        return Compared(
            device=key.device, source=key.source, network=key.network, backend=key.backend, precision=key.precision,
            options=self.options, metric=metric, basis=basis, unit=METRICS[metric].unit,
            margin=self.rules.margin(metric), verdict="unknown", differs=self.differs,
        )  # fmt: skip


def rows_of_cell(pair: Pair, rules: Rules, match: Match) -> Iterator[Row]:
    """Each metric that a side has, in the order of `METRICS`."""
    cell, by_name = _Cell(pair, rules), _by_metric(pair, match)
    for name in sorted(by_name, key=_place):
        if all(by_name[name].sides) or not _other_start(name, by_name):
            yield _of_metric(cell, name, by_name[name])
    found = accuracies(pair.a, pair.b)
    if found is not None:
        told = cell.row("accuracy")
        told.a, told.b = found.a, found.b
        yield Row(told, Examples(found.estimate, found.p))
    if not by_name and found is None and not all(row.excluded for row in (*pair.a, *pair.b)):
        for name in sorted({row.time for row in (*pair.a, *pair.b)}):
            yield _missing(cell, name, cell.row(name))


@lru_cache(maxsize=1024)
def _place(name: str) -> tuple[int, str]:
    return ORDER[name.partition("/")[0]], name


def _by_metric(pair: Pair, match: Match) -> dict[str, _Blocks]:
    """The blocks that have each metric."""
    a, b = ([row for row in side if row.values] for side in (pair.a, pair.b))
    names = {tuple(row.values) for side in (a, b) for row in side}
    void = {name for side in (pair.a, pair.b) for row in side for name in row.uncertainties if name not in row.values}
    if len(names) == 1 and not void:
        return dict.fromkeys(names.pop(), _Blocks(a, b, match))
    return {
        name: _Blocks([row for row in a if name in row.values], [row for row in b if name in row.values], match)
        for name in void.union(*names)
    }


def _of_metric(cell: _Cell, name: str, blocks: _Blocks) -> Row:
    told = cell.row(name)
    told.a, told.unresolved_a = _told(name, blocks.sides[0], cell.pair.a)
    told.b, told.unresolved_b = _told(name, blocks.sides[1], cell.pair.b)
    if not all(blocks.sides):
        why = {"A": told.unresolved_a, "B": told.unresolved_b}
        too_short = [side for side in why if why[side] is TOO_SHORT]
        return _too_short(told, too_short, blocks) if too_short else _missing(cell, name, told)
    told.blocks, told.nights = blocks.blocks, blocks.nights
    a, b = ([row.values[name] for row in side] for side in blocks.sides)
    if min(a) <= 0 or min(b) <= 0:
        told.reason = "a figure of a block is not above zero, so there is no ratio"
        return Row(told)
    medians = median(a), median(b)
    if told.metric in ENERGIES and not blocks.energies_compare:
        told.reason = "the gain of a gauge is not known: energies of different phones do not compare"
        return Row(told)
    if blocks.least < MIN_BLOCKS:
        told.ratio = None if told.a is None or told.b is None else told.b / told.a
        told.needs_blocks = max(1, MIN_BLOCKS - blocks.least)
        told.reason = f"needs {MIN_BLOCKS} blocks on each side"
    if (design := blocks.design) is None:
        return Row(told)
    figures = Figures(
        design, itemgetter(*design.a)(a), itemgetter(*design.b)(b), medians[1] / medians[0],
        cell.rules.between_nights(told.metric),
        ROUNDING_MS / medians[0] if told.metric == "latency" and blocks.whole_ms else 0.0,
    )  # fmt: skip
    return Row(told, figures, blocks.share, blocks.phone)


def _told(name: str, blocks: Sequence[SideRow], every: Iterable[SideRow]) -> tuple[float | None, Unresolved | None]:
    """The figure of a side as results tell it, or why they do not: by one rule."""
    if not blocks:
        return None, TOO_SHORT if any(name in row.uncertainties for row in every) else None
    (metric, _, basis), values = name.partition("/"), [row.values[name] for row in blocks]
    if not QUANTITIES[metric].has_interval:
        return median(values), None
    in_time, watched = sorted(blocks, key=lambda row: row.started_at), any(row.watched for row in blocks)
    values = [row.values[name] for row in in_time]
    if metric not in ENERGIES:
        return median_of(values, watched=watched)[::2]
    known = [row.uncertainties.get(name, (0.0, 0.0)) for row in in_time]  # older baselines have none
    value, _, why_not = energy_of(values, known, watched=watched, positive=not basis.startswith("net"))
    return (None, why_not) if why_not else (value, None)


def _too_short(told: Compared, sides: Sequence[str], blocks: _Blocks) -> Row:
    """The row of an energy whose loads were too short on these sides. Where neither has one, it cannot be had."""
    told.reason = f"loads on {' and '.join(sides)} were too short: needs {TOO_SHORT.needs_load_s:g} s"
    if not any(blocks.sides):
        told.verdict, told.missing_on, told.expected = "missing", "both", False
    return Row(told)


def _other_start(name: str, by_name: Mapping[str, _Blocks]) -> bool:
    """Return whether a side without a kind of set-up started in another way, as one does that found kept programs."""
    if not name.startswith("setup/"):
        return False
    lacking = [side for side, rows in enumerate(by_name[name].sides) if not rows]
    starts = [blocks for other, blocks in by_name.items() if other.startswith("setup/")]
    return all(any(blocks.sides[side] for blocks in starts) for side in lacking)


def _missing(cell: _Cell, name: str, told: Compared) -> Row:
    pair = cell.pair
    has = [any(name in row.values for row in side) for side in (pair.a, pair.b)]
    lacks = "both" if not any(has) else "A" if has[1] else "B"
    side = pair.a if lacks == "A" else pair.b
    problems = dict.fromkeys(row.problem for row in side if row.problem)
    told.verdict, told.missing_on = "missing", lacks
    excluded = next((row.excluded for row in side if row.excluded), "")
    told.expected = lacks != "both" and not excluded
    if excluded:
        told.reason = f"excluded on {lacks}: {excluded}"
    elif not side:
        told.reason = f"the configuration was not run on {lacks}"
    elif problems:
        told.reason = f"no block went well on {lacks}: {', '.join(problems)}"
    else:
        told.reason = f"{lacks} did not measure it" if lacks != "both" else "neither side measured anything"
    return Row(told)


def _differs(pair: Pair) -> Differs:
    """Return in which facts the sides differ, of those that both tell."""
    distinct = _distinct(pair.a), _distinct(pair.b)
    if distinct[0] == distinct[1]:
        return {}
    first, second = map(_provenance, distinct)
    return {
        name: (", ".join(first[name]), ", ".join(second[name]))
        for name in first
        if name in second and first[name].keys() != second[name].keys()
    }


def _distinct(rows: Iterable[SideRow]) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    for row in rows:
        if row.provenance not in found:
            found.append(row.provenance)
    return found


def _provenance(distinct: Iterable[dict[str, str]]) -> dict[str, dict[str, None]]:
    found: dict[str, dict[str, None]] = {}
    for each in distinct:
        for name, text in each.items():
            found.setdefault(name, {})[text] = None
    return found
