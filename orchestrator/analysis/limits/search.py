"""Search the largest value of a dimension that a device bears: by doubling, then by bisection. Pure."""

from __future__ import annotations

from collections.abc import Collection

from orchestrator.model.experiment import LimitSearch


def next_value(search: LimitSearch, ran: Collection[int], not_run: Collection[int]) -> int | None:
    """What to try after these values ran and those did not; None: the answer is as near as was asked for."""
    high = min(not_run, default=None)
    low = max((value for value in ran if high is None or value < high), default=None)
    if low is None and high is None:
        return None
    if high is None:
        assert low is not None
        return None if low >= search.most else min(2 * low, search.most)
    if low is None:
        halved = _step(search, high // 2)
        return halved if 0 < halved < high else None
    if high - low <= max(search.step, search.tolerance * low):
        return None
    middle = _step(search, (low + high) // 2)
    return middle if low < middle < high else None


def _step(search: LimitSearch, value: int) -> int:
    return value - value % search.step
