"""The end of a probe of a search."""

from __future__ import annotations

from typing import Literal

from orchestrator.model.record import Outcome

Ended = Literal["ran", "refused", "killed", "failed", "lost", "cancelled"]
"""`refused`: it needs more than the device, its driver or the memory budget has; `killed`: by the device, for memory as
far as its log tells: the limits that are searched. `failed`: anything else that would happen again, which says nothing
of a limit; `lost`: the farm's fault."""
REFUSED = frozenset({"limit", "out_of_memory"})
"""Causes of a failed job that name a limit."""
WRONG_OUTPUT, CRASHED = "wrong_output", "crashed"


def ended(outcome: str, cause: str) -> Ended:
    """Return how a job ended, as a search sees it. A block that was measured under bad conditions ran all the same."""
    match outcome:
        case Outcome.OK:
            return "ran"
        case Outcome.INVALID:
            return "failed" if cause == WRONG_OUTPUT else "ran"
        case Outcome.KILLED:
            return "failed" if cause == CRASHED else "killed"
        case Outcome.FAILED:
            return "refused" if cause in REFUSED else "failed"
        case Outcome.LOST:
            return "lost"
    return "cancelled"
