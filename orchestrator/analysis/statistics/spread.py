"""Where the spread of a cell comes from: samples of a block, blocks of a session, or sessions, and what to repeat.

Repeat the highest level that varies (Kalibera & Jones, "Rigorous Benchmarking in Reasonable Time", ISMM 2013): blocks
of one session, however many, say nothing of the next session. Components are those of the nested analysis of variance
of logarithms, by unweighted means. A session ends with a reboot, or where the device rested for `SESSION_GAP_S`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import log, sqrt
from statistics import fmean, variance
from typing import Literal

from pydantic import Field

from orchestrator.analysis.figures import BlockFigures
from orchestrator.analysis.incomplete_beta import f_tail
from orchestrator.model.base import Model
from orchestrator.model.record import Doubt, DoubtCode

SESSION_GAP_S = 3600.0
SURE = 0.01
"""Chance of the F test to find sessions different that are not."""
MEDIAN_VARIANCE = 1.5708
"""Variance of the median of normal values over that of their mean."""


class Spread(Model):
    """Standard deviations as shares of the cell's figure, of each level alone; None where it is not known."""

    sample: float | None = Field(default=None, ge=0)
    """Of one timed sample within its block."""
    block: float | None = Field(default=None, ge=0)
    """Of a block within its session, without what its samples explain."""
    session: float | None = Field(default=None, ge=0)
    """Of a session, without what its blocks explain; None of one session."""
    blocks: int
    sessions: int
    differ: bool
    """Whether sessions differ by more than their blocks explain."""
    repeat: Literal["samples", "blocks", "sessions", ""]
    """The level that adds most to the uncertainty of the figure: of that more is worth most."""


def spread(blocks: Sequence[BlockFigures], value_of: Callable[[BlockFigures], float | None]) -> Spread | None:
    """Of good blocks of one cell on one device, in order of time; None of fewer than two figures above zero."""
    found = [(block, value) for block in blocks if (value := value_of(block)) is not None and value > 0]
    if len(found) < 2:
        return None
    sessions = [[log(value) for _, value in own] for own in _sessions(found)]
    sample = _sample_variance(block for block, _ in found)
    counts = [len(own) for own in sessions]
    freedom = sum(counts) - len(sessions)
    within = sum(variance(own) * (len(own) - 1) for own in sessions if len(own) > 1) / freedom if freedom else None
    explained = 0.0 if sample is None else sample[0] * sample[1]
    block = None if within is None else max(0.0, within - explained)
    between = variance([fmean(own) for own in sessions]) if len(sessions) > 1 else None
    a_session = fmean(1 / count for count in counts)
    session = None if between is None or within is None else max(0.0, between - within * a_session)
    adds = {
        "samples": explained / len(found),
        "blocks": (block or 0.0) / len(found),
        "sessions": (session or 0.0) / len(sessions),
    }
    most = max(adds, key=adds.__getitem__)
    return Spread(
        sample=None if sample is None else sqrt(sample[0]),
        block=None if block is None else sqrt(block),
        session=None if session is None else sqrt(session),
        blocks=len(found),
        sessions=len(sessions),
        differ=_differ(between, within, a_session, len(sessions) - 1, freedom),
        repeat=most if adds[most] > 0 else "",
    )


def sessions_doubt(found: Spread | None) -> Doubt | None:
    """That sessions differ, so that an interval over blocks says too little."""
    if found is None or not found.differ or not found.session:
        return None
    of_blocks = "" if found.block is None else f", blocks of one by {found.block:.1%}"
    detail = f"{found.sessions} sessions differ by {found.session:.1%}{of_blocks}: more sessions, not more blocks"
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


def _differ(between: float | None, within: float | None, a_session: float, of_sessions: int, freedom: int) -> bool:
    if between is None or within is None:
        return False
    if within == 0:
        return between > 0
    return f_tail(of_sessions, freedom, between / (within * a_session)) < SURE
