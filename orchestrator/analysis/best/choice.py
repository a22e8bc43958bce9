"""Choose the best value of an axis in every group, and test whether the runner-up is resolved.

By the estimators of `farm compare` (`comparison/ratio.py`), so that both answer alike: a block is one figure, values
are ranked by the median of their blocks, and the ratio of another value to the best is paired by round where
rounds are, else over nights or blocks. It is resolved where its 95 % interval does not hold one. Of an import without
blocks nobody knows what is independent: nothing is resolved. Nor with fewer than `MIN_BLOCKS` blocks of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from pydantic import Field

from orchestrator.analysis.comparison.metrics import METRICS, MIN_BLOCKS
from orchestrator.analysis.comparison.ratio import Estimate, Method, estimate, rounding_of
from orchestrator.analysis.comparison.verdict import bounds, interval_of, why_untold
from orchestrator.analysis.statistics import Interval, Unresolved, median_of
from orchestrator.model.base import Model
from orchestrator.model.device import Source
from orchestrator.model.errors import NoData, NotComparable, UnknownName

from .measured import Measured, Value


class ValueMedian(Model):
    """One value of the axis in one group."""

    value: Value
    median_ms: float
    """Median of the blocks."""
    unresolved: Unresolved | None = None
    """The reason why results do not tell this median."""
    blocks: int
    samples: int
    also: dict[str, Value] = Field(default_factory=dict)
    """Its other columns, beside those of the group."""


class Best(Model):
    """One group: the value with the least median against the runner-up."""

    group: dict[str, Value]
    axis: str
    best: Value
    median_ms: float
    runner_up: Value | None
    """None where the group has one value only."""
    ratio: float | None
    """Median of the runner-up over that of the best."""
    interval: Interval | None
    """95 % interval of the ratio; None where there are too few blocks for one."""
    unresolved: Unresolved | None = None
    """The reason why ratio and interval, measured, are not told."""
    method: Method | None
    resolved: bool
    """True if the data tell the best from the runner-up."""
    reason: str
    """The reason why nothing could be resolved; empty where it could."""
    tied_with: tuple[Value, ...]
    """Values that the data do not tell from the best."""
    also_differ: tuple[str, ...]
    """Columns that differ between the values beside the axis: the comparison is not of the axis alone."""
    values: tuple[ValueMedian, ...]
    """All values, the best first."""
    sources: tuple[Source, ...] = ()
    """The sources of its blocks: `phone`, `virtual`, ..."""


@dataclass
class _Candidate:
    value: Value
    rest: dict[str, Value]
    blocks: list[Measured] = field(default_factory=list)

    @property
    def median_ms(self) -> float:
        """Median of the blocks; 0 where one of them is."""
        values = [each.block.value for each in self.blocks]
        return median(values) if min(values) > 0 else 0.0

    @property
    def blind(self) -> bool:
        """Return whether nobody knows how it was repeated, or whether a time is zero or less."""
        alone = len(self.blocks) == 1 and self.blocks[0].foreign
        return alone or any(each.block.value <= 0 for each in self.blocks)


Groups = dict[tuple[Value | None, ...], dict[Value, _Candidate]]


def choose(
    found: Iterable[Measured], per: Sequence[str], axis: str, where: Mapping[str, str], *, watched: bool = False
) -> list[Best]:
    """The best value of `axis` in every group of `per`, in the order in which groups were measured. `watched`: as
    intervals have it.

    Raises UnknownName for a column that is not there, NoData where nothing is left, and NotComparable where a value
    would be a median over different things.
    """
    listed = list(found)
    _check_columns(listed, (*per, axis, *where))
    groups: Groups = {}
    for one in listed:
        if axis in one.columns and all(_text(one.columns.get(name)) == text for name, text in where.items()):
            _put(groups, one, per, axis)
    if not groups:
        raise NoData("nothing is left to compare", remedy=_remedy_where(listed, where))
    return [
        _best(dict(zip(per, key, strict=True)), axis, list(group.values()), watched=watched)
        for key, group in groups.items()
    ]


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
        "their median would say nothing of either",
        remedy=f"add {name} to --per, or choose one with --where {name}={_text(first)}",
    )


def _best(group: Mapping[str, Value | None], axis: str, candidates: Sequence[_Candidate], *, watched: bool) -> Best:
    ordered = sorted(candidates, key=_rank)
    first, others = ordered[0], ordered[1:]
    found = [_ratio(first, other) for other in others]
    second = found[0] if found else None
    why_not = why_untold(second)[0] if second else None
    return Best(
        group={name: "" if value is None else value for name, value in group.items()},
        axis=axis,
        best=first.value,
        median_ms=first.median_ms,
        runner_up=others[0].value if others else None,
        ratio=others[0].median_ms / first.median_ms if others and first.median_ms and not why_not else None,
        interval=interval_of(second) if second and not why_not else None,
        unresolved=why_not,
        method=second.method if second else None,
        resolved=_is_resolved(second),
        reason=_reason(first, others),
        tied_with=tuple(other.value for other, each in zip(others, found, strict=True) if not _is_resolved(each)),
        also_differ=_also_differ(candidates),
        values=tuple(_told(candidate, watched=watched) for candidate in ordered),
        sources=tuple(sorted({each.source for candidate in candidates for each in candidate.blocks})),
    )


def _rank(candidate: _Candidate) -> tuple[float, float, str]:
    """Return the key by which candidates are sorted: of equal medians the smaller value comes first."""
    value = candidate.value
    return candidate.median_ms, float(value) if isinstance(value, int | float) else 0.0, str(value)


def _told(candidate: _Candidate, *, watched: bool) -> ValueMedian:
    samples = sum(each.samples for each in candidate.blocks)
    in_time = [each.block.value for each in sorted(candidate.blocks, key=lambda each: each.block.started_at)]
    return ValueMedian(
        value=candidate.value, median_ms=candidate.median_ms, unresolved=median_of(in_time, watched=watched).unresolved,
        blocks=len(candidate.blocks), samples=samples, also=candidate.rest,
    )  # fmt: skip


def _ratio(best: _Candidate, other: _Candidate) -> Estimate | None:
    """None where blocks are not told apart, or too few."""
    if best.blind or other.blind:
        return None
    ours, others = ([each.block for each in candidate.blocks] for candidate in (best, other))
    found = estimate(ours, others, METRICS["latency"].between, rounding_of(ours, others))
    return found if found is not None and min(found.blocks) >= MIN_BLOCKS else None


def _reason(best: _Candidate, others: Sequence[_Candidate]) -> str:
    if any(each.blind for each in (best, *others)):
        return "the import tells no blocks apart"
    few = min((len(each.blocks) for each in (best, *others)), default=0) < MIN_BLOCKS
    return f"that needs {MIN_BLOCKS} blocks of each value" if others and few else ""


def _is_resolved(found: Estimate | None) -> bool:
    return found is not None and bounds(found).low.item() > 0


def _also_differ(candidates: Sequence[_Candidate]) -> tuple[str, ...]:
    names = dict.fromkeys(name for candidate in candidates for name in candidate.rest)
    return tuple(name for name in names if len({_text(each.rest.get(name)) for each in candidates}) > 1)


def _remedy_where(found: Sequence[Measured], where: Mapping[str, str]) -> str:
    values = {name: sorted({_text(one.columns.get(name)) for one in found}) for name in where}
    return "; ".join(f"{name} is one of {', '.join(known)}" for name, known in values.items()) or "choose another axis"


def _text(value: Value | None) -> str:
    """Return a value as a command line writes it; nothing for an axis that a cell does not have."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
