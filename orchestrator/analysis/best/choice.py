"""Choose the best value of an axis in every group, and test whether the runner-up is resolved.

The independent unit is the block: its mean is one figure. Only of imports that do not tell blocks apart each sample is
taken for one. The difference to the runner-up has Welch's 95 % interval (B. L. Welch, Biometrika 34, 1947) and is
resolved where that does not hold zero. Times in whole milliseconds vary at least as much as their rounding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import hypot, sqrt
from statistics import fmean, variance
from typing import Literal

from orchestrator.analysis.statistics import Interval
from orchestrator.analysis.student_t import half_width, welch_freedom
from orchestrator.errors import NoData, NotComparable, UnknownName
from orchestrator.model.base import Model

from .measured import Measured, Value

ROUNDING_VARIANCE = 1 / 12
"""Of a time that was rounded to whole milliseconds, in ms^2."""


class ValueMean(Model):
    """One value of the axis in one group."""

    value: Value
    mean_ms: float
    std_ms: float | None
    """Standard uncertainty of the mean; None where there is one unit only."""
    units: int
    samples: int


class Best(Model):
    """One group: the value with the least mean against the runner-up."""

    group: dict[str, Value]
    axis: str
    best: Value
    mean_ms: float
    runner_up: Value | None
    """None where the group has one value only."""
    margin_ms: float | None
    """Mean of the runner-up minus that of the best."""
    margin_share: float | None
    """The margin as a share of the runner-up's mean."""
    interval_ms: Interval | None
    """95 % interval of the margin; None where there are too few units for one."""
    resolved: bool
    """Whether the data tell the best from the runner-up."""
    tied_with: tuple[Value, ...]
    """Values that the data do not tell from the best."""
    unit: Literal["block", "sample"]
    also_differ: tuple[str, ...]
    """Columns that differ between the values beside the axis: the comparison is not of the axis alone."""
    values: tuple[ValueMean, ...]
    """All values, the best first."""


@dataclass
class _Candidate:
    value: Value
    rest: dict[str, Value]
    blocks: list[Measured] = field(default_factory=list)


Groups = dict[tuple[Value | None, ...], dict[Value, _Candidate]]


def choose(found: Iterable[Measured], per: Sequence[str], axis: str, where: Mapping[str, str]) -> list[Best]:
    """The best value of `axis` in every group of `per`, in the order in which groups were measured.

    Raises UnknownName for a column that is not there, NoData where nothing is left, and NotComparable where a value
    would be a mean over different things.
    """
    listed = list(found)
    _check_columns(listed, (*per, axis, *where))
    groups: Groups = {}
    for one in listed:
        if axis in one.columns and all(_text(one.columns.get(name)) == text for name, text in where.items()):
            _put(groups, one, per, axis)
    if not groups:
        raise NoData("nothing is left to compare", remedy=_remedy_where(listed, where))
    return [_best(dict(zip(per, key, strict=True)), axis, list(group.values())) for key, group in groups.items()]


def _check_columns(found: Sequence[Measured], names: Sequence[str]) -> None:
    known = dict.fromkeys(name for one in found for name in one.columns)
    for name in names:
        if name not in known:
            raise UnknownName(f"there is no column {name!r}", remedy=f"columns: {', '.join(known)}")


def _put(groups: Groups, one: Measured, per: Sequence[str], axis: str) -> None:
    value, key = one.columns[axis], tuple(one.columns.get(name) for name in per)
    rest = {name: each for name, each in one.columns.items() if name != axis and name not in per}
    candidate = groups.setdefault(key, {}).setdefault(value, _Candidate(value, rest))
    if candidate.rest != rest:
        raise _mixed(candidate, rest, axis)
    candidate.blocks.append(one)


def _mixed(candidate: _Candidate, rest: Mapping[str, Value], axis: str) -> NotComparable:
    before = candidate.rest
    differ = {
        name: (before.get(name), rest.get(name)) for name in {**before, **rest} if before.get(name) != rest.get(name)
    }
    differences = "; ".join(f"{name}: {_text(a)}, {_text(b)}" for name, (a, b) in differ.items())
    name, (first, _) = next(iter(differ.items()))
    return NotComparable(
        f"{axis}={_text(candidate.value)} was measured with different {' and '.join(differ)} ({differences}): "
        "their mean would say nothing of either",
        remedy=f"add {name} to --per, or choose one with --where {name}={_text(first)}",
    )


def _best(group: Mapping[str, Value | None], axis: str, candidates: Sequence[_Candidate]) -> Best:
    unit = _unit(candidates)
    ordered = sorted((_mean(candidate, unit) for candidate in candidates), key=_rank)
    first, others = ordered[0], ordered[1:]
    second = others[0] if others else None
    margin_ms = second.mean_ms - first.mean_ms if second else None
    interval = _interval(first, second) if second else None
    return Best(
        group={name: "" if value is None else value for name, value in group.items()},
        axis=axis,
        best=first.value,
        mean_ms=first.mean_ms,
        runner_up=second.value if second else None,
        margin_ms=margin_ms,
        margin_share=margin_ms / second.mean_ms if second and margin_ms is not None and second.mean_ms else None,
        interval_ms=interval,
        resolved=interval is not None and interval.low > 0,
        tied_with=tuple(other.value for other in others if not _is_resolved(first, other)),
        unit=unit,
        also_differ=_also_differ(candidates),
        values=tuple(ordered),
    )


def _rank(mean: ValueMean) -> tuple[float, float, str]:
    """Of equal means the smaller value first."""
    return mean.mean_ms, float(mean.value) if isinstance(mean.value, int | float) else 0.0, str(mean.value)


def _unit(candidates: Sequence[_Candidate]) -> Literal["block", "sample"]:
    blind = all(len(candidate.blocks) == 1 and candidate.blocks[0].foreign for candidate in candidates)
    return "sample" if blind else "block"


def _mean(candidate: _Candidate, unit: Literal["block", "sample"]) -> ValueMean:
    blocks = [block.times for block in candidate.blocks]
    samples = sum(times.count for times in blocks)
    rounding = ROUNDING_VARIANCE if all(times.whole for times in blocks) else 0.0
    if unit == "sample":
        (only,) = blocks
        mean_ms, spread, units, least = only.mean_ms, only.variance, only.count, rounding
    else:
        means = [times.mean_ms for times in blocks]
        mean_ms, spread = fmean(means), variance(means) if len(means) > 1 else None
        units, least = len(means), rounding * len(means) / samples
    std = None if spread is None else sqrt(max(spread, least) / units)
    return ValueMean(value=candidate.value, mean_ms=mean_ms, std_ms=std, units=units, samples=samples)


def _interval(best: ValueMean, other: ValueMean) -> Interval | None:
    if best.std_ms is None or other.std_ms is None:
        return None
    freedom = welch_freedom((best.std_ms, best.units - 1), (other.std_ms, other.units - 1))
    half = half_width(hypot(best.std_ms, other.std_ms), freedom)
    margin_ms = other.mean_ms - best.mean_ms
    return Interval(low=margin_ms - half, high=margin_ms + half)


def _is_resolved(best: ValueMean, other: ValueMean) -> bool:
    interval = _interval(best, other)
    return interval is not None and interval.low > 0


def _also_differ(candidates: Sequence[_Candidate]) -> tuple[str, ...]:
    names = dict.fromkeys(name for candidate in candidates for name in candidate.rest)
    return tuple(name for name in names if len({_text(each.rest.get(name)) for each in candidates}) > 1)


def _remedy_where(found: Sequence[Measured], where: Mapping[str, str]) -> str:
    values = {name: sorted({_text(one.columns.get(name)) for one in found}) for name in where}
    return "; ".join(f"{name} is one of {', '.join(known)}" for name, known in values.items()) or "choose another axis"


def _text(value: Value | None) -> str:
    """As it is written on a command line; nothing for an axis that a cell does not have."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
