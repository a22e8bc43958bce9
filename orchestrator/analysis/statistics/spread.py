"""The sources of a cell's spread, and what to repeat: samples of a block, blocks of a session, sessions of a boot, or
boots.

Repeat the highest level that varies (Kalibera & Jones, "Rigorous Benchmarking in Reasonable Time", ISMM 2013): blocks
of one session, however many, say nothing of the next session, nor sessions of one boot of the next boot. Components are
those of the nested analysis of variance of logarithms, by unweighted means (Searle, Casella & McCulloch, "Variance
Components", 1992). A session ends with a reboot, or where the device rested for `SESSION_GAP_S`. Boots are a level of
their own where one of several has two sessions; else nobody can tell them from sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from math import log, sqrt
from statistics import fmean, variance
from typing import Literal, NamedTuple

from pydantic import Field

from orchestrator.analysis.incomplete_beta import f_tail
from orchestrator.figures import BlockFigures
from orchestrator.model.base import Model
from orchestrator.model.record import Doubt, DoubtCode

SESSION_GAP_S = 3600.0
SURE = 0.01
"""Chance of the F tests to find sessions or boots different that are not."""
MEDIAN_VARIANCE = 1.5708
"""Variance of the median of normal values over that of their mean."""


class Spread(Model):
    """Standard deviations as shares of the cell's figure, of each level alone; None where it is not known."""

    sample: float | None = Field(default=None, ge=0)
    """The deviation of one timed sample within its block."""
    block: float | None = Field(default=None, ge=0)
    """The deviation of a block within its session, without what its samples explain."""
    session: float | None = Field(default=None, ge=0)
    """The deviation of a session, without what its blocks explain; None of one session. Where boots are not known as
    a level, theirs is in it."""
    boot: float | None = Field(default=None, ge=0)
    """The deviation of a boot, without what its sessions explain; None of one boot, and where none has two sessions."""
    blocks: int
    sessions: int
    boots: int
    """0 where a block does not tell its boot."""
    differ: Literal["sessions", "boots", ""]
    """The level whose parts differ by more than what is within them explains; of two the higher one."""
    repeat: Literal["samples", "blocks", "sessions", "boots", ""]
    """The level that adds most to the uncertainty of the figure: of that more is worth most."""


class _Level(NamedTuple):
    """A level of nested groups."""

    between: float
    """Mean variance of the means of a group's parts, within the groups."""
    freedom: int
    parts: float
    """Mean of 1 / number of parts, over groups: so much of the variance between parts is in a group's mean."""


def spread(blocks: Sequence[BlockFigures], value_of: Callable[[BlockFigures], float | None]) -> Spread | None:
    """Return the spread of a cell's good blocks on a device, in order of time; None of fewer than two above zero."""
    found = [(block, value) for block in blocks if (value := value_of(block)) is not None and value > 0]
    if len(found) < 2:
        return None
    sessions = _sessions(found)
    known = all(block.boot_id for block, _ in found)
    boots = [list(own) for _, own in groupby(sessions, lambda own: own[0][0].boot_id)] if known else [sessions]
    of_block, of_session, of_boot = _levels([[[log(value) for _, value in own] for own in boot] for boot in boots])
    sample = _sample_variance(block for block, _ in found)
    explained = 0.0 if sample is None else sample[0] * sample[1]
    block = None if of_block is None else max(0.0, of_block.between - explained)
    session, boot = _component(of_session, of_block), _component(of_boot, of_session)
    adds = {
        "samples": explained / len(found),
        "blocks": (block or 0.0) / len(found),
        "sessions": (session or 0.0) / len(sessions),
        "boots": (boot or 0.0) / len(boots),
    }
    most = max(adds, key=adds.__getitem__)
    return Spread(
        sample=None if sample is None else sqrt(sample[0]),
        block=None if block is None else sqrt(block),
        session=None if session is None else sqrt(session),
        boot=None if boot is None else sqrt(boot),
        blocks=len(found),
        sessions=len(sessions),
        boots=len(boots) if known else 0,
        differ="boots" if _differ(of_boot, of_session) else "sessions" if _differ(of_session, of_block) else "",
        repeat=most if adds[most] > 0 else "",
    )


def sessions_doubt(found: Spread | None) -> Doubt | None:
    """Return a doubt that sessions or boots differ, so that an interval over blocks says too little."""
    if found is None or not found.differ:
        return None
    below = {"boots": ("session", found.session), "sessions": ("block", found.block)}[found.differ]
    many, by = (found.boots, found.boot) if found.differ == "boots" else (found.sessions, found.session)
    if not by:
        return None
    of_below = "" if below[1] is None else f", {below[0]}s of one by {below[1]:.1%}"
    detail = f"{many} {found.differ} differ by {by:.1%}{of_below}: more {found.differ}, not more {below[0]}s"
    return Doubt(code=DoubtCode.SESSIONS_DIFFER, detail=detail)


def _sessions(found: Iterable[tuple[BlockFigures, float]]) -> list[list[tuple[BlockFigures, float]]]:
    grouped: list[list[tuple[BlockFigures, float]]] = []
    for block, value in found:
        before = grouped[-1][-1][0] if grouped else None
        rested = before is None or block.started_at - before.ended_at > SESSION_GAP_S
        if rested or (before is not None and before.boot_id != block.boot_id):
            grouped.append([])
        grouped[-1].append((block, value))
    return grouped


def _sample_variance(blocks: Iterable[BlockFigures]) -> tuple[float, float] | None:
    """Mean over blocks of the relative variance of a sample, and what of it a block's median keeps."""
    times = [block.times for block in blocks if block.times and block.times.variance is not None]
    known = [
        (each.variance / each.mean_ms**2, each.count) for each in times if each.variance is not None and each.mean_ms
    ]
    if not known:
        return None
    return fmean(share for share, _ in known), fmean(MEDIAN_VARIANCE / count for _, count in known)


def _levels(boots: Sequence[Sequence[Sequence[float]]]) -> tuple[_Level | None, _Level | None, _Level | None]:
    """Return the levels of blocks in sessions, of sessions in boots (else in the run), and of boots."""
    of_block = _level([own for boot in boots for own in boot])
    means = [[fmean(own) for own in boot] for boot in boots]
    within = _level(means)
    if within is None or len(boots) == 1:
        return of_block, _level([[mean for boot in means for mean in boot]]), None
    return of_block, within, _level([[fmean(own) for own in means]])


def _level(groups: Sequence[Sequence[float]]) -> _Level | None:
    """None where no group has two parts."""
    freedom = sum(map(len, groups)) - len(groups)
    if not freedom:
        return None
    between = sum(variance(own) * (len(own) - 1) for own in groups if len(own) > 1) / freedom
    return _Level(between, freedom, fmean(1 / len(own) for own in groups))


def _component(level: _Level | None, below: _Level | None) -> float | None:
    """The variance of a level without what the one below explains."""
    return None if level is None or below is None else max(0.0, level.between - below.between * below.parts)


def _differ(level: _Level | None, below: _Level | None) -> bool:
    if level is None or below is None:
        return False
    if below.between == 0:
        return level.between > 0
    return f_tail(level.freedom, below.freedom, level.between / (below.between * below.parts)) < SURE
