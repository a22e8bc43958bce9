"""`Beside`: a published figure and ours, and whether the shape is the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log
from typing import Literal, NamedTuple

from orchestrator.analysis.best import Best
from orchestrator.analysis.comparison.ratio import Estimate
from orchestrator.analysis.comparison.verdict import bounds
from orchestrator.model.base import Model

from .figure import Figure, OurDevice
from .ours import Ours, ratio

Verdict = Literal["reproduced", "within noise", "different", "not comparable"]
NOT_COMPARABLE: Verdict = "not comparable"
ORDER = 10**0.5
"""Ratios whose quotient is at most so large have the same order."""
ALIKE = 1.25
"""Ratio up to which two are about the same."""


class Beside(Model):
    """One published figure, and what one of our devices has to set against it."""

    table: str
    """Its title; empty of a finding."""
    row: str
    column: str
    metric: str
    unit: str
    published_on: str
    """The device; empty where it is not said."""
    published: float | None
    """None of a finding."""
    serial: str
    """Ours; empty where none of ours measured anything."""
    source: str = ""
    same_model: bool = False
    """Whether ours is of the model that was published, real or virtual."""
    ours: float | None = None
    """In the published unit."""
    cell: str = ""
    ratio: float | None = None
    """Ours over theirs."""
    verdict: Verdict
    why: str


class Reproduction(Model):
    """Everything that was published beside everything of ours that it can be set against."""

    beside: tuple[Beside, ...]
    counts: dict[str, dict[Verdict, int]]
    """By our device and source: figures and findings of each verdict."""


def counted(found: Sequence[Beside]) -> Reproduction:
    counts: dict[str, Counter[Verdict]] = {}
    for each in found:
        counts.setdefault(f"{each.serial} {each.source}".strip(), Counter())[each.verdict] += 1
    return Reproduction(beside=tuple(found), counts={name: dict(own) for name, own in counts.items()})


class Judged(NamedTuple):
    verdict: Verdict
    why: str


def judge_line(line: Sequence[tuple[Figure, Ours]]) -> list[Judged]:
    """Each figure of a line against the one that wins there, among those that we have."""
    had = [(figure, ours) for figure, ours in line if ours.value is not None]
    if len(had) < 2:
        alone = Judged(NOT_COMPARABLE, "ours has no other figure of its line, and one alone has no shape")
        return [Judged(NOT_COMPARABLE, ours.why_not) if ours.value is None else alone for _, ours in line]
    won, at = min(had, key=lambda pair: pair[0].value * pair[0].scale)
    leader, ahead = min(had, key=lambda pair: pair[1].value or 0)
    return [
        Judged(NOT_COMPARABLE, ours.why_not)
        if ours.value is None
        else _winner(leader, at, ahead, won)
        if figure is won
        else judge_ratio(figure.value * figure.scale / (won.value * won.scale), at, ours, over=_name(won, figure))
        for figure, ours in line
    ]


def _winner(leader: Figure, at: Ours, ahead: Ours, won: Figure) -> Judged:
    if leader is won:
        return Judged("reproduced", "is least in ours too")
    if is_resolved(found := ratio(ahead, at)) is False:
        return Judged("within noise", f"ours does not tell it from {_name(leader, won)}" + _few(found))
    return Judged("different", f"in ours {_name(leader, won)} is least")


def judge_ratio(theirs: float, base: Ours, ours: Ours, over: str) -> Judged:
    """A ratio of two figures of theirs against that of ours: the side of one, and its order."""
    assert base.value and ours.value
    found, quotient = ratio(base, ours), ours.value / base.value
    text = f"{theirs:.3g} times {over} there, {quotient:.3g} times in ours"
    if is_resolved(found) is False:
        return Judged("within noise", text + _few(found))
    if (theirs > 1) != (quotient > 1):
        return Judged("different", text)
    if not 1 / ORDER <= quotient / theirs <= ORDER:
        return Judged("different", f"{text}: the same side, another order")
    return Judged("reproduced", text)


def judge_best(published: float, best: Best) -> Judged:
    """The published optimum of an axis against ours."""
    values = {float(each.value): each.value for each in best.values}
    if published not in values:
        known = ", ".join(str(values[each]) for each in sorted(values))
        return Judged(NOT_COMPARABLE, f"{best.axis}={published:g} was not measured; ours has {known}")
    if float(best.best) == published:
        return Judged("reproduced", "equal" if best.resolved else "equal, though others are not told from it")
    slower = next(each.median_ms for each in best.values if float(each.value) == published) / best.median_ms
    text = f"{best.best} in ours, which is {slower:.3g} times as fast as {published:g}"
    if values[published] in best.tied_with or best.reason:
        return Judged("within noise", f"{text}; {best.reason or 'the two are not told apart'}")
    return Judged("different", text)


def judge_count(published: float, ours: int, of: int) -> Judged:
    """None, or some: how many of another set says nothing."""
    return Judged("reproduced" if (published == 0) == (ours == 0) else "different", f"{ours} of {of} in ours")


def judge_finding(expect: str, of: Ours, over: Ours) -> Judged:
    """`of` against `over`: less, more, or about the same."""
    for one in (of, over):
        if one.value is None:
            return Judged(NOT_COMPARABLE, one.why_not)
    assert of.value and over.value
    found, quotient = ratio(over, of), of.value / over.value
    text = f"{quotient:.3g} times in ours"
    if expect == "alike":
        return Judged("reproduced" if abs(log(quotient)) <= log(ALIKE) else "different", text)
    if is_resolved(found) is False:
        return Judged("within noise", text + _few(found))
    return Judged("reproduced" if (quotient < 1) == (expect == "less") else "different", text)


def beside(figure: Figure, device: OurDevice, ours: Ours, judged: Judged, *, same_model: bool) -> Beside:
    """The figure in a report's words and units."""
    value = None if ours.value is None else ours.value / figure.scale
    return Beside(
        table=figure.table.title,
        row=figure.row,
        column=figure.column,
        metric=figure.metric,
        unit=figure.table.unit,
        published_on=figure.device,
        published=figure.value,
        serial=device.serial,
        source=device.source,
        same_model=same_model,
        ours=value,
        cell=ours.cell,
        ratio=None if value is None or not figure.value else value / figure.value,
        verdict=judged.verdict,
        why=judged.why,
    )


def is_resolved(found: Estimate | None) -> bool:
    """Whether the 95 % interval of a ratio leaves out one; not where blocks are too few for an interval."""
    if found is None:
        return False
    low, high = (each.item() for each in bounds(found))
    return not low <= 0 <= high


def _few(found: Estimate | None) -> str:
    return "" if found else " (too few blocks for an interval)"


def _name(figure: Figure, beside: Figure) -> str:
    """In the words that tell two figures of one line apart."""
    return figure.column if figure.row == beside.row else figure.row
