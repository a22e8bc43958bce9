"""Compare two sides: one row for each metric of each cell that either has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean, median

from pydantic import Field

from orchestrator.analysis.statistics import Interval
from orchestrator.model.base import Model

from .accuracy import accuracies
from .matching import Key, Match, Pair, pairs_of
from .metrics import METRICS, MIN_BLOCKS, Rules
from .ratio import ROUNDING_MS, Block, Estimate, Method, enough, estimate
from .rows import SideRow
from .verdict import Verdict, bounds, holm, judge, needed, p_value, share_of


class Compared(Model):
    """One metric of one cell on one device."""

    device: str
    """Serial; model where cells are matched by model."""
    source: str
    network: str
    backend: str
    precision: str
    options: dict[str, str]
    metric: str
    basis: str = ""
    """Which figure of the metric: source and scope of an energy, kind of memory, of set-up."""
    unit: str
    a: float | None = None
    """Geometric mean of the blocks; share of an accuracy."""
    b: float | None = None
    ratio: float | None = None
    """B over A."""
    interval: Interval | None = None
    """95 % interval of the ratio, of this row alone."""
    margin: float
    verdict: Verdict
    worse: bool | None = None
    """Of a difference: whether B is the worse one."""
    missing_on: str = ""
    """`A` or `B`: the side that lacks it."""
    p: float | None = None
    adjusted_p: float | None = None
    """By Holm over all rows of the table."""
    needs_blocks: int | None = None
    """Blocks more on each side that would settle it; None where it is settled, or no number of blocks would."""
    needs_nights: int | None = None
    """The same in nights, where these are what counts."""
    method: Method | None = None
    blocks: tuple[int, int] = (0, 0)
    nights: tuple[int, int] = (0, 0)
    reason: str = ""
    """Why it is unknown or missing."""
    differs: dict[str, tuple[str, str]] = Field(default_factory=dict)
    """Provenance that the sides do not have in common: of A, of B."""


@dataclass
class _Found:
    """A row before the table is judged."""

    row: Compared
    found: Estimate | None = None
    p: float | None = None
    share: float = 1.0
    """Of the errors that this look may make."""


def compare(
    a: Iterable[SideRow], b: Iterable[SideRow], rules: Rules | None = None, match: Match = "device"
) -> tuple[Compared, ...]:
    """Every metric of every cell of either side; verdicts hold for the whole table."""
    rules = rules or Rules()
    found = [each for pair in pairs_of(a, b, match) for each in _rows(pair, rules, match)]
    tests = [each for each in found if each.p is not None]
    adjusted = holm([each.p for each in tests if each.p is not None])
    for each, p in zip(tests, adjusted, strict=True):
        each.row = _judged(each, p, rules, len(tests))
    return tuple(each.row for each in found)


def _rows(pair: Pair, rules: Rules, match: Match) -> Iterator[_Found]:
    differs = _differs(pair)
    names = {name: None for row in (*pair.a, *pair.b) for name in row.values}
    for name in sorted(names, key=lambda name: ([*METRICS].index(name.partition("/")[0]), name)):
        yield _of_metric(pair, name, rules, match, differs)
    found = accuracies(pair.a, pair.b)
    if found is not None:
        row = _row(pair.key, "accuracy", rules, a=found.a, b=found.b, differs=differs)
        yield _Found(row, found.estimate, found.p)
    if not names and found is None:
        yield _Found(_missing(pair, "latency", rules, differs))


def _row(key: Key, name: str, rules: Rules, **more: object) -> Compared:
    metric, _, basis = name.partition("/")
    return Compared.model_validate(
        {
            "device": key.device, "source": key.source, "network": key.network, "backend": key.backend,
            "precision": key.precision, "options": dict(key.options), "metric": metric, "basis": basis,
            "unit": METRICS[metric].unit, "margin": rules.margin(metric), "verdict": "unknown", **more,
        }
    )  # fmt: skip


def _of_metric(pair: Pair, name: str, rules: Rules, match: Match, differs: dict[str, tuple[str, str]]) -> _Found:
    sides = [[row for row in side if name in row.values] for side in (pair.a, pair.b)]
    if not (sides[0] and sides[1]):
        return _Found(_missing(pair, name, rules, differs))
    values = [[row.values[name] for row in side] for side in sides]
    told = {"blocks": tuple(map(len, sides)), "nights": tuple(len({row.night for row in s}) for s in sides)}
    if min(map(min, values)) <= 0:
        reason = "a figure of a block is not above zero, so there is no ratio"
        return _Found(_row(pair.key, name, rules, reason=reason, differs=differs, **told))
    metric = name.partition("/")[0]
    a, b = (exp(fmean(map(log, each))) for each in values)
    phones = {row.serial or row.device for side in sides for row in side}
    relative = any(row.relative_energy for side in sides for row in side)
    if metric == "energy" and relative and (match == "model" or len(phones) > 1):
        reason = "the gain of a gauge is not known: energies of different phones do not compare"
        return _Found(_row(pair.key, name, rules, a=a, b=b, reason=reason, differs=differs, **told))
    rounded = metric == "latency" and all(row.whole_ms for side in sides for row in side)
    rounding = ROUNDING_MS / median(values[0]) if rounded else 0.0
    blocks = [[Block(row.night, row.round, row.started_at, row.values[name]) for row in side] for side in sides]
    found = estimate(blocks[0], blocks[1], rules.between_nights(metric), rounding)
    few = f"needs {MIN_BLOCKS} blocks on each side"
    if found is None or not enough(found):
        least = min(found.blocks if found else map(len, sides))
        row = _row(pair.key, name, rules, a=a, b=b, differs=differs, **told)
        ratio = {} if found is None else _ratio(found)
        more = {"ratio": b / a, **ratio, "reason": few, "needs_blocks": max(1, MIN_BLOCKS - least)}
        return _Found(row.model_copy(update=more))
    told = {"blocks": found.blocks, "nights": found.nights}
    row = _row(pair.key, name, rules, a=a, b=b, differs=differs, **told)
    return _Found(row, found, p_value(found), share_of(max(row.look for side in sides for row in side)))


def _missing(pair: Pair, name: str, rules: Rules, differs: dict[str, tuple[str, str]]) -> Compared:
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
    return _row(pair.key, name, rules, verdict="missing", missing_on=lacks, reason=reason, differs=differs)


def _judged(each: _Found, adjusted_p: float, rules: Rules, rows: int) -> Compared:
    row, found = each.row, each.found
    assert found is not None
    verdict = judge(bounds(found, each.share), row.margin, adjusted_p, each.share * rules.level)
    more: dict[str, object] = {
        **_ratio(found), "verdict": verdict, "p": each.p, "adjusted_p": adjusted_p, "method": found.method,
        "blocks": found.blocks, "nights": found.nights,
    }  # fmt: skip
    if verdict == "different":
        more["worse"] = (found.log_ratio > 0) == METRICS[row.metric].more_is_worse
    elif verdict == "unknown":
        more.update(_needs(found, row.margin, rules.level, rows, each.share))
    return row.model_copy(update=more)


def _ratio(found: Estimate) -> dict[str, object]:
    within = bounds(found)
    return {
        "ratio": exp(found.log_ratio),
        "interval": Interval(low=exp(max(-700, within.low)), high=exp(min(700, within.high))),
        "method": found.method,
    }


def _needs(found: Estimate, margin: float, level: float, rows: int, share: float) -> dict[str, object]:
    units = needed(found, margin, level, rows, share)
    if units is None:
        return {"reason": "no number of blocks settles it: compare more nights on each side, or both in one night"}
    if found.method == "nights":
        return {"needs_nights": units, "needs_blocks": units * found.unit_blocks}
    return {"needs_blocks": units}


def _differs(pair: Pair) -> dict[str, tuple[str, str]]:
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
