"""Count how jobs ended, as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping

TIMED_OUT = 124
"""Exit status where a wait was given up, as that of timeout(1): nothing is known to be wrong, but it is not over."""


def outcomes(counts: Mapping[str, int]) -> dict[str, int]:
    """Jobs that are over, by outcome: every outcome always, for programs."""
    from orchestrator.model.record import Outcome

    return {outcome.value: counts.get(outcome.value, 0) for outcome in Outcome}


def all_ok(found: Mapping[str, int], *, searching: bool = False) -> bool:
    """Return whether every job ended well. `searching` for limits, a job that does not run is a result."""
    well = ("ok", "killed", "failed") if searching else ("ok",)
    return not any(count for word, count in found.items() if word not in well)


def present(counts: Mapping[str, int]) -> dict[str, int]:
    """Jobs by state or outcome, without those of which there are none."""
    return {word: count for word, count in counts.items() if count}
